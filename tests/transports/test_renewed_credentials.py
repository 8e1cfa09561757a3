"""A server's certificate is replaced when its files change, and only then."""

import os

import grpc
import pytest

from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import TlsFiles, server_credentials


@pytest.fixture
def files(tmp_path):
    made = CertificateFolder(tmp_path)
    made.make_authority()
    made.make_server()
    return TlsFiles.of_server(tmp_path)


@pytest.fixture
def fetch(files, monkeypatch):
    """Return what gRPC calls in every handshake."""
    given = {}

    def note(_first, fetcher, *, require_client_authentication):
        given["fetch"] = fetcher
        assert require_client_authentication

    monkeypatch.setattr(grpc, "dynamic_ssl_server_credentials", note)
    server_credentials(files)
    return given["fetch"]


def test_grpc_is_given_nothing_new_while_the_files_stay(fetch):
    """Replacing the certificate in every handshake crashes gRPC under many of them."""
    assert [fetch() for _ in range(5)] == [None] * 5


def test_grpc_is_given_changed_files_once(fetch, files):
    later = files.certificate.stat().st_mtime_ns + 10**9
    os.utime(files.certificate, ns=(later, later))
    assert isinstance(fetch(), grpc.ServerCertificateConfiguration)
    assert fetch() is None
