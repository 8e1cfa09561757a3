"""Keys are made at their owners; the authority sees requests alone."""

import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding

from lightsplit.errors import ConfigError
from lightsplit.transports.authority import subject
from lightsplit.transports.certificate_requests import (
    CertificateRequest,
    make_client_request,
    make_server_request,
)


def test_a_request_holds_the_name_and_the_public_key_alone(tmp_path):
    made = make_client_request(tmp_path, "alice")
    assert (made.path.name, made.common_name, made.names) == ("alice.csr", "alice", ())
    key = tmp_path / "alice.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"PRIVATE" not in made.path.read_bytes()
    assert CertificateRequest.load(made.path).fingerprint == made.fingerprint


def test_a_second_request_is_for_the_same_key(tmp_path):
    first = make_client_request(tmp_path, "alice")
    assert make_client_request(tmp_path, "alice").fingerprint == first.fingerprint


def test_a_server_asks_for_its_names(tmp_path):
    made = make_server_request(tmp_path, ["host.example.org", "10.0.0.5"])
    values = {str(name.value) for name in made.names}
    assert {"host.example.org", "10.0.0.5", "localhost"} <= values


def test_what_is_no_request_is_one_sentence(tmp_path):
    path = tmp_path / "x.csr"
    path.write_text("nothing")
    with pytest.raises(ConfigError, match="not a request made by"):
        CertificateRequest.load(path)
    with pytest.raises(ConfigError, match="cannot read"):
        CertificateRequest.load(tmp_path / "absent.csr")


def test_a_key_of_another_kind_is_refused(tmp_path):
    builder = x509.CertificateSigningRequestBuilder(subject("alice"))
    request = builder.sign(ed25519.Ed25519PrivateKey.generate(), None)
    path = tmp_path / "alice.csr"
    path.write_bytes(request.public_bytes(Encoding.PEM))
    with pytest.raises(ConfigError, match="elliptic curve"):
        CertificateRequest.load(path)
