"""Failures of real connections: their messages, and whether to try again."""

import contextlib
import re
import socket

import grpc
import pytest

from lightsplit.errors import ConfigError, ExchangeError, RemoteError, TransportError
from lightsplit.protocol.control import Ready
from lightsplit.protocol.frames import Reader
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    server_credentials,
)
from lightsplit.transports.grpc_client import Connection
from lightsplit.transports.grpc_server import SessionServer


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Two folders of certificates that know nothing of each other."""
    made = []
    for name in ("ours", "theirs"):
        folder = CertificateFolder(tmp_path_factory.mktemp(name) / "pki")
        folder.make_authority()
        folder.make_server()
        folder.make_client("alice")
        made.append(folder)
    return made


@pytest.fixture
def ours(authorities):
    return authorities[0]


def credentials_of(folder):
    return channel_credentials(TlsFiles.of_client(folder.path, "alice"))


def server_with(folder):
    tls = None if folder is None else TlsFiles.of_server(folder.path)
    return SessionServer(
        lambda _peer, requests: requests,
        Reader,
        credentials=None if tls is None else server_credentials(tls),
        max_sessions=2,
    )


@contextlib.contextmanager
def serving(folder, host="127.0.0.1"):
    server = server_with(folder)
    try:
        port = server.bind(f"{host}:0")
        server.start()
        yield f"{host}:{port}"
    finally:
        server.stop(0.1)


def failure(address, credentials):
    line = Connection(address, Reader(), credentials)
    with contextlib.closing(line), pytest.raises(ExchangeError) as caught:
        line.call(Ready(1))
    return caught.value


def test_another_authority_is_named_with_what_to_do(authorities):
    ours, theirs = authorities
    with serving(ours) as address:
        error = failure(address, credentials_of(theirs))
    assert type(error) is RemoteError
    assert str(error) == (
        f"{address}: not a server of our authority: unable to get local issuer "
        "certificate; the certificates of both ends must be made in one folder of "
        "'lightsplit certs'"
    )


def test_a_certificate_for_another_host_is_named_with_what_to_do(ours):
    with serving(ours, host="127.0.0.2") as address:
        error = failure(address, credentials_of(ours))
    assert type(error) is RemoteError
    assert "under this name: its certificate is for other hosts" in str(error)
    assert "--server-name HOST" in str(error)


def test_a_server_without_certificates_is_not_tried_again(ours):
    with serving(None) as address:
        error = failure(address, credentials_of(ours))
    assert type(error) is RemoteError
    assert str(error).startswith(f"{address}: the server speaks plain text")


@pytest.mark.parametrize("kind", ["plain text", "another authority's"])
def test_a_client_that_is_shut_out_learns_the_likely_reason(kind, authorities):
    ours, theirs = authorities
    mixed = grpc.ssl_channel_credentials(
        ours.ca.read_bytes(),
        theirs.client_key("alice").read_bytes(),
        theirs.client("alice").read_bytes(),
    )
    with serving(ours) as address:
        error = failure(address, None if kind == "plain text" else mixed)
    assert type(error) is TransportError  # a line that was cut looks the same
    assert "give both ends certificates of one authority (--certs), or neither" in str(
        error
    )


def test_an_error_about_a_missing_server_names_its_address_once():
    for address in ("127.0.0.1:9", "[::1]:9"):
        error = failure(address, None)
        assert type(error) is TransportError
        said = f"{address}: Failed to connect to remote host: "
        assert str(error).startswith(said)
    said = str(failure("localhost:9", None))
    assert re.match(r"localhost:9: ipv[46]:\S+:9: Failed", said)


def test_a_port_that_is_taken_says_so():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        server = server_with(None)
        with pytest.raises(ConfigError) as caught:
            server.bind(address)
        server.stop()
    assert str(caught.value) == (
        f"cannot listen on {address}: Address already in use; stop the program that "
        "listens there, or use another port"
    )


@pytest.mark.parametrize("address", ["no-such-host.invalid:7443", "192.0.2.1:7443"])
def test_an_address_that_is_not_ours_says_why(address):
    server = server_with(None)
    with pytest.raises(ConfigError, match=f"cannot listen on {address}: [A-Z]") as got:
        server.bind(address)
    server.stop()
    assert "GRPC_VERBOSITY" not in str(got.value)
