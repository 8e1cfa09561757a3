"""A list that is read again when it changes, and cannot be spoilt."""

import logging

import pytest

from lightsplit.errors import ConfigError
from lightsplit.transports import trust
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.registrar import Registrar
from lightsplit.transports.revocation import Revocations


@pytest.fixture
def folder(tmp_path):
    made = CertificateFolder(tmp_path / "authority")
    made.make_authority()
    for name in ("alice", "bob"):
        made.make_client(name)
    return made


def serial(folder, name):
    return trust.load_certificates(folder.client(name))[0].serial_number


def test_a_list_that_appears_is_read(folder):
    alice, revoked = serial(folder, "alice"), Revocations(folder.revoked, folder.ca)
    assert alice not in revoked
    assert not revoked.refresh()
    Registrar(folder).revoke("alice")
    assert revoked.refresh()
    assert alice in revoked
    assert serial(folder, "bob") not in revoked
    assert not revoked.refresh()


@pytest.mark.parametrize("spoilt", ["damaged", "gone", "older"])
def test_a_spoilt_list_lets_nobody_in_again(folder, spoilt, caplog):
    alice, bob = serial(folder, "alice"), serial(folder, "bob")
    registrar = Registrar(folder)
    registrar.revoke("alice")
    older = folder.revoked.read_bytes()
    registrar.revoke("bob")
    revoked = Revocations(folder.revoked, folder.ca)
    folder.revoked.unlink()
    if spoilt != "gone":
        folder.revoked.write_bytes(older if spoilt == "older" else b"damaged")
    with caplog.at_level(logging.WARNING):
        revoked.refresh()
    assert "the list of before stays in force" in caplog.text
    assert alice in revoked
    assert bob in revoked


def test_a_list_of_another_authority_is_refused_at_the_start(folder, tmp_path):
    Registrar(folder).revoke("alice")
    other = CertificateFolder(tmp_path / "other")
    other.make_authority()
    with pytest.raises(ConfigError, match="was not signed by the CA"):
        Revocations(folder.revoked, other.ca)


def test_what_is_no_list_is_refused_at_the_start(folder):
    folder.revoked.write_text("no list")
    with pytest.raises(ConfigError, match="not a list of revoked certificates"):
        Revocations(folder.revoked, folder.ca)
