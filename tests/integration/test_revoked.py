"""Certificates of a running server: revoked clients go, renewed ones are used."""

import shutil
import ssl

import pytest
from cryptography import x509
from lab.processes import wait_until
from lab.runs import NAMES

from lightsplit.transports import trust
from lightsplit.transports.certificate_requests import (
    make_client_request,
    make_server_request,
)
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.registrar import Registrar

LONG = {"epochs": 500, "heads": "private"}


@pytest.fixture
def authority(tmp_path):
    """An authority that has no key but its own; every owner has a folder of its own."""
    made = CertificateFolder(tmp_path / "authority")
    made.make_authority()
    registrar = Registrar(made)
    requests = {"server": make_server_request(tmp_path / "pki-server", [])}
    requests |= {n: make_client_request(tmp_path / f"pki-{n}", n) for n in NAMES}
    for name, request in requests.items():
        signed = registrar.sign(name, request)
        for file in (signed.path, made.ca):
            shutil.copy(file, request.path.parent)
    return made


@pytest.fixture
def cluster(authority, make_cluster, tmp_path, zygote):
    made = make_cluster(LONG, serve=["--certs", tmp_path / "pki-server"])
    made.port = made.start_server()
    made.ports = dict.fromkeys(NAMES, made.port)
    for name in NAMES:
        command = [*made.join_command(name), "--certs", tmp_path / f"pki-{name}"]
        made.clients[name] = zygote.start(tmp_path / f"{name}.log", *command)
    log = tmp_path / "alice" / "turns.jsonl"
    wait_until(lambda: log.exists() and len(log.read_text()) > 2000, "some turns")
    return made


def test_a_revoked_client_is_put_out_and_kept_out(cluster, authority, tmp_path, zygote):
    Registrar(authority).revoke("alice")
    shutil.copy(authority.revoked, tmp_path / "pki-server")
    alice = cluster.clients["alice"]
    assert alice.wait() == 1
    assert "'alice' with serial" in alice.text
    assert "revoked; ask the authority for a new one" in alice.text
    assert cluster.server.code is None
    wait_until(lambda: "alice is away" in cluster.server.text, "her end at the server")
    command = [*cluster.join_command("alice"), "--certs", tmp_path / "pki-alice"]
    again = zygote.start(tmp_path / "again.log", *command)
    assert again.wait() == 1
    assert "revoked" in again.text
    assert cluster.clients["bob"].code is None


def test_a_renewed_certificate_is_used_without_a_restart(cluster, authority, tmp_path):
    def shown():
        pem = ssl.get_server_certificate(("127.0.0.1", cluster.port), timeout=120)
        return x509.load_pem_x509_certificate(pem.encode()).serial_number

    before = shown()
    made = Registrar(authority).renew("server", days=9)
    shutil.copy(made.path, tmp_path / "pki-server" / "server.crt")
    after = trust.load_certificates(made.path)[0].serial_number
    assert before != after
    assert shown() == after
    assert cluster.server.code is None
    assert all(one.code is None for one in cluster.clients.values())
