import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.transports import trust
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import (
    TlsFiles,
    channel_credentials,
    check_plain_text_allowed,
    is_loopback,
    peer_name,
    server_credentials,
)

MONTH_AGO = datetime.now(UTC) - timedelta(days=30)


def made(path):
    folder = CertificateFolder(path)
    folder.make_authority()
    folder.make_server()
    folder.make_client("alice")
    folder.make_client("old", days=1, starts=MONTH_AGO)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return made(tmp_path_factory.mktemp("other"))


def unchecked(ca, certificate, key):
    """Credentials as an attacker makes them, past our own checks."""
    return grpc.ssl_channel_credentials(
        ca.read_bytes(), key.read_bytes(), certificate.read_bytes()
    )


def unchecked_server(certificate, key, ca):
    pair = (key.read_bytes(), certificate.read_bytes())
    return grpc.ssl_server_credentials([pair], ca.read_bytes(), True)


@contextmanager
def serving(credentials):
    """A server whose one method answers with the caller's name."""
    seen = []

    def answer(request, context):
        seen.append(peer_name(context))
        return seen[-1].encode()

    methods = {"who": grpc.unary_unary_rpc_method_handler(answer)}
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("test", methods),)
        )
        port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        try:
            yield port, seen
        finally:
            server.stop(None).wait()


def ask(port, credentials, *options):
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        return channel.unary_unary("/test/who")(b"", timeout=60).decode()


def assert_refused(port, seen, credentials, *options):
    with pytest.raises(grpc.RpcError) as caught:
        ask(port, credentials, *options)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert seen == []


def test_a_client_of_the_authority_is_let_in_under_its_name(folder):
    server = server_credentials(TlsFiles.of_server(folder.path))
    client = channel_credentials(TlsFiles.of_client(folder.path, "alice"))
    with serving(server) as (port, _):
        assert ask(port, client) == "alice"


def test_a_client_that_cannot_prove_its_name_is_refused_and_the_server_continues(
    folder, other
):
    alice = TlsFiles.of_client(folder.path, "alice")
    theirs = TlsFiles.of_client(other.path, "alice")
    refused = {
        "another CA": unchecked(folder.ca, theirs.certificate, theirs.key),
        "expired": unchecked(*TlsFiles.of_client(folder.path, "old")),
        "no certificate": grpc.ssl_channel_credentials(folder.ca.read_bytes()),
        "the server's": unchecked(*TlsFiles.of_server(folder.path)),
    }
    with serving(server_credentials(TlsFiles.of_server(folder.path))) as (port, seen):
        for credentials in refused.values():
            assert_refused(port, seen, credentials)
        assert ask(port, channel_credentials(alice)) == "alice"


def test_plain_text_does_not_reach_a_server_with_certificates(folder):
    with serving(server_credentials(TlsFiles.of_server(folder.path))) as (port, seen):
        with (
            grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
            pytest.raises(grpc.RpcError),
        ):
            channel.unary_unary("/test/who")(b"", timeout=5)
        assert seen == []


@pytest.mark.parametrize(
    ("version", "is_spoken"),
    [
        (ssl.TLSVersion.TLSv1_1, False),
        (ssl.TLSVersion.TLSv1_2, True),
        (ssl.TLSVersion.TLSv1_3, True),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_a_server_speaks_no_tls_before_1_2(folder, version, is_spoken):
    # Said by the other end, or it closed the line: not that this end offers nothing.
    refused = pytest.raises(ssl.SSLError, match=r"alert protocol version|EOF occurred")
    credentials = server_credentials(TlsFiles.of_server(folder.path))
    with serving(credentials) as (port, _seen), nullcontext() if is_spoken else refused:
        spoken = spoken_version(port, folder, version)
        assert spoken == version.name.replace("_", ".")


def spoken_version(port, folder, version):
    """Return the version of a handshake in which the client offers one version."""
    context = ssl.create_default_context(cafile=folder.ca)
    context.load_cert_chain(folder.client("alice"), folder.client_key("alice"))
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # so that 1.1 is offered at all
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=120) as line,
        context.wrap_socket(line, server_hostname="localhost") as secure,
    ):
        return secure.version()


def test_a_client_refuses_a_server_of_another_authority(folder, other):
    client = channel_credentials(TlsFiles.of_client(folder.path, "alice"))
    theirs = unchecked_server(other.server, other.server_key, folder.ca)
    with serving(theirs) as (port, seen):
        assert_refused(port, seen, client)


def test_a_client_refuses_a_server_that_holds_a_clients_certificate(folder):
    """Another client must not be able to play the server, even with the right names."""
    folder.make_client("mallory")
    pair = folder.client("mallory"), folder.client_key("mallory")
    client = channel_credentials(TlsFiles.of_client(folder.path, "alice"))
    override = ("grpc.ssl_target_name_override", "mallory")  # so that the name fits
    with serving(unchecked_server(*pair, folder.ca)) as (port, seen):
        assert_refused(port, seen, client, override)


def test_a_client_refuses_a_server_under_another_name(folder):
    client = channel_credentials(TlsFiles.of_client(folder.path, "alice"))
    override = "grpc.ssl_target_name_override"
    with serving(server_credentials(TlsFiles.of_server(folder.path))) as (port, seen):
        assert_refused(port, seen, client, (override, "elsewhere.example.org"))
        assert ask(port, client, (override, "localhost")) == "alice"


def context(**properties):
    return SimpleNamespace(auth_context=lambda: properties)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "got 0"),
        ([b"alice", b"bob"], "got 2"),
        ([b"alice\0evil"], "no client's name"),
        ([b"\xff"], "no client's name"),
        ([b"lightsplit server"], "no client's name"),
    ],
)
def test_a_peer_has_exactly_one_proper_name_or_none(names, text):
    with pytest.raises(ProtocolError, match=text):
        peer_name(context(x509_common_name=names))


def test_a_connection_in_plain_text_has_no_name():
    with pytest.raises(ProtocolError, match="got 0"):
        peer_name(context())


def test_a_client_may_have_its_files_beside_the_authoritys(folder, tmp_path):
    for path in (folder.ca, folder.client("alice"), folder.client_key("alice")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "alice.key").chmod(0o600)
    files = TlsFiles.of_client(tmp_path, "alice")
    assert files.key == tmp_path / "alice.key"
    channel_credentials(files)


def test_every_unusable_set_of_files_is_refused_before_connecting(folder, other):
    alice = TlsFiles.of_client(folder.path, "alice")
    theirs = TlsFiles.of_client(other.path, "alice")
    refused = {
        r"does not belong to .*alice\.crt": alice._replace(key=theirs.key),
        r"alice\.crt was not signed by": alice._replace(ca=other.ca),
        r"old\.crt expired on": TlsFiles.of_client(folder.path, "old"),
        r"server\.crt is not the certificate of a client": TlsFiles.of_server(
            folder.path
        ),
        r"cannot read .*bob\.crt": TlsFiles.of_client(folder.path, "bob"),
        r"alice\.key is not a certificate": alice._replace(certificate=alice.key),
        r"alice\.crt holds a secret": alice._replace(key=alice.certificate),
    }
    for text, files in refused.items():
        with pytest.raises(ConfigError, match=text):
            channel_credentials(files)
    with pytest.raises(ConfigError, match="not the certificate of a server"):
        server_credentials(alice)


def test_a_certificate_of_tomorrow_names_the_clock(tmp_path):
    folder = CertificateFolder(tmp_path)
    folder.make_authority()
    folder.make_client("early", starts=datetime.now(UTC) + timedelta(days=1))
    with pytest.raises(ConfigError, match=r"valid from .* clock says"):
        channel_credentials(TlsFiles.of_client(tmp_path, "early"))


@pytest.mark.parametrize("kind", ["garbage", "password"])
def test_a_key_that_cannot_be_loaded_is_refused(folder, tmp_path, kind):
    path, lock = tmp_path / "alice.key", BestAvailableEncryption(b"secret")
    key = trust.load_key(folder.client_key("alice"))
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
    path.write_bytes(locked if kind == "password" else b"nothing")
    path.chmod(0o600)
    files = TlsFiles.of_client(folder.path, "alice")._replace(key=path)
    with pytest.raises(ConfigError, match=r"password|not a private key"):
        channel_credentials(files)


def signed(name, issuer=None, *, is_ca=True):
    """A certificate of somebody else's making: no stated purpose, RFC 5280's least."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_name, issuer_key = issuer or (subject, key)
    certificate = (
        x509.CertificateBuilder(issuer_name, subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(MONTH_AGO)
        .not_valid_after(MONTH_AGO + timedelta(days=60))
        .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
        .sign(issuer_key, SHA256())
    )
    return certificate.public_bytes(Encoding.PEM), key, (subject, key)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_chain_of_another_tools_making_must_lead_to_the_authority(tmp_path, is_whole):
    root, _, root_identity = signed("root")
    middle, _, middle_identity = signed("middle", root_identity)
    leaf, key, _ = signed("alice", middle_identity, is_ca=False)
    files = TlsFiles(*(tmp_path / name for name in ("ca.crt", "a.crt", "a.key")))
    files.ca.write_bytes(root)
    files.certificate.write_bytes(leaf + middle if is_whole else leaf)
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files.key.write_bytes(key.private_bytes(*plain))
    files.key.chmod(0o600)
    expected = nullcontext() if is_whole else pytest.raises(ConfigError, match="signed")
    with expected:
        channel_credentials(files)


LOOPBACK = [
    "localhost:1",
    "LOCALHOST",
    "127.0.0.1:1",
    "127.9.9.9",
    "[::1]:1",
    "::1",
]
ELSEWHERE = [
    "",
    ":50051",
    "0.0.0.0:1",
    "[::]:1",
    "10.0.0.5:1",
    "example.org:1",
    "localhost.example.org:1",
    "127.0.0.1.example.org:1",
    "dns:///localhost:1",
    "::1:50051",
    "[::ffff:10.0.0.5]:1",
]


@pytest.mark.parametrize("address", LOOPBACK)
def test_plain_text_is_allowed_on_this_machine(address):
    assert is_loopback(address)
    check_plain_text_allowed(address, insecure=False)


@pytest.mark.parametrize("address", ELSEWHERE)
def test_plain_text_elsewhere_must_be_asked_for(address):
    with pytest.raises(ConfigError, match=r"lightsplit certs .*--insecure"):
        check_plain_text_allowed(address, insecure=False)
    check_plain_text_allowed(address, insecure=True)
