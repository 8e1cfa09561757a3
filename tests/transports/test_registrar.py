"""Sign, renew, revoke: what the authority does for owners that keep their keys."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.transports import trust
from lightsplit.transports.certificate_requests import (
    make_client_request,
    make_server_request,
)
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.registrar import Registrar
from lightsplit.transports.revocation import Revocations


@pytest.fixture
def folder(tmp_path):
    made = CertificateFolder(tmp_path / "authority")
    made.make_authority()
    return made


@pytest.fixture
def registrar(folder):
    return Registrar(folder)


def serial(path):
    return trust.load_certificates(path)[0].serial_number


def test_a_signed_request_fits_the_key_that_stayed_at_home(folder, registrar, tmp_path):
    request = make_client_request(tmp_path / "alice", "alice")
    made = registrar.sign("alice", request)
    trust.check_certificate(made.path, ca=folder.ca, role="client")
    trust.check_pair(made.path, tmp_path / "alice" / "alice.key")
    assert not list(folder.path.rglob("alice.key"))


def test_a_servers_request_becomes_a_servers_certificate(folder, registrar, tmp_path):
    request = make_server_request(tmp_path / "server", ["host.example.org"])
    made = registrar.sign("server", request)
    found = trust.check_certificate(made.path, ca=folder.ca, role="server")
    assert "host.example.org" in str(found.extensions)


def test_the_authority_says_who_an_owner_is(registrar, tmp_path):
    mallory = make_client_request(tmp_path, "mallory")
    with pytest.raises(ConfigError, match="request of 'alice', got one of 'mallory'"):
        registrar.sign("alice", mallory)
    with pytest.raises(ConfigError, match="got one of 'mallory'"):
        registrar.sign("server", mallory)


def test_another_key_for_a_known_name_needs_a_revocation(registrar, tmp_path):
    registrar.sign("alice", make_client_request(tmp_path / "old", "alice"))
    new = make_client_request(tmp_path / "new", "alice")
    with pytest.raises(ConfigError, match=r"certs revoke .* alice"):
        registrar.sign("alice", new)
    registrar.revoke("alice")
    registrar.sign("alice", new)


def test_a_renewed_certificate_has_the_same_key_and_names(folder, registrar, tmp_path):
    request = make_server_request(tmp_path, ["host.example.org"])
    before = serial(registrar.sign("server", request).path)
    made = registrar.renew("server", days=9)
    trust.check_pair(made.path, tmp_path / "server.key")
    assert "host.example.org" in str(trust.load_certificates(made.path)[0].extensions)
    assert serial(made.path) != before


def test_a_revocation_covers_renewed_certificates_too(folder, registrar, tmp_path):
    first = serial(registrar.sign("alice", make_client_request(tmp_path, "alice")).path)
    second = serial(registrar.renew("alice").path)
    bob = registrar.sign("bob", make_client_request(tmp_path, "bob"))
    assert set(registrar.revoke("alice")) == {first, second}
    revoked = Revocations(folder.revoked, folder.ca)
    assert first in revoked
    assert second in revoked
    assert serial(bob.path) not in revoked
    assert not folder.client("alice").exists()
    registrar.revoke("bob")  # the next list has those of before, too
    assert first in Revocations(folder.revoked, folder.ca)


def test_a_name_nobody_has_cannot_be_renewed_or_revoked(registrar):
    for act in (registrar.renew, registrar.revoke):
        with pytest.raises(ConfigError, match=r"dora.crt does not exist"):
            act("dora")
