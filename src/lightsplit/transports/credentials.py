"""Certificates as gRPC takes them: each end proves who it is, or nothing is said.

Files are checked before any connection is tried, because a failed handshake tells
neither end why. Plain text is for loopback, or for those who ask for it by name.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.transports import key_files, trust
from lightsplit.transports.certificates import CertificateFolder, check_client_name

if TYPE_CHECKING:
    import grpc


class TlsFiles(NamedTuple):
    """The three PEM files that one end needs."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def of_server(cls, folder: Path) -> Self:
        """Return the server's files in a folder made by ``lightsplit certs``."""
        made = CertificateFolder(folder)
        return cls(made.ca, made.server, made.server_key)

    @classmethod
    def of_client(cls, folder: Path, name: str) -> Self:
        """Return a client's files, beside ``ca.crt`` or under ``clients``."""
        made = CertificateFolder(folder)
        beside = folder / f"{check_client_name(name)}.crt"
        if beside.exists():
            return cls(made.ca, beside, beside.with_name(f"{name}.key"))
        return cls(made.ca, made.client(name), made.client_key(name))


def server_credentials(files: TlsFiles) -> "grpc.ServerCredentials":
    """Return credentials that let in only clients with a certificate of the CA."""
    import grpc

    ca, certificate, key = _read(files, role="server")
    return grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=ca, require_client_auth=True
    )


def channel_credentials(files: TlsFiles) -> "grpc.ChannelCredentials":
    """Return credentials that trust only a server with a certificate of the CA."""
    import grpc

    ca, certificate, key = _read(files, role="client")
    return grpc.ssl_channel_credentials(
        root_certificates=ca, private_key=key, certificate_chain=certificate
    )


def peer_name(context: "grpc.ServicerContext") -> str:
    """Return the name in the certificate that the client proved to hold.

    gRPC has verified the certificate by then; a connection without one has no name.
    """
    properties = cast("Mapping[str, Sequence[bytes]]", context.auth_context())
    names = properties.get("x509_common_name", ())
    if len(names) != 1:
        raise ProtocolError(
            f"expected one name in the client's certificate, got {len(names)}"
        )
    try:
        return check_client_name(names[0].decode("ascii"))
    except ValueError as error:  # of decoding, or of the name
        raise ProtocolError(
            f"the client's certificate holds {names[0]!r}, which is no client's name"
        ) from error


def check_plain_text_allowed(address: str, *, insecure: bool) -> None:
    """Raise unless ``address`` stays on this machine or the user asked for plain text.

    Example:
        >>> check_plain_text_allowed("127.0.0.1:50051", insecure=False)
    """
    if insecure or is_loopback(address):
        return
    raise ConfigError(
        f"{address!r} is not on this machine and needs certificates: make them with "
        "'lightsplit certs FOLDER'; or give --insecure, and everybody on the way can "
        "read and change all messages, and anybody can join under any name"
    )


def is_loopback(address: str) -> bool:
    """Whether ``HOST``, ``HOST:PORT`` or ``[HOST]:PORT`` never leaves this machine.

    Anything in doubt, such as another scheme of gRPC's, counts as leaving it.

    Example:
        >>> is_loopback("[::1]:50051"), is_loopback("0.0.0.0:50051")
        (True, False)
    """
    host = _host(address)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    if address.count(":") > 1:  # an IPv6 address without a port
        return address
    return address.partition(":")[0]


def _read(files: TlsFiles, *, role: str) -> tuple[bytes, bytes, bytes]:
    trust.check_certificate(files.certificate, ca=files.ca, role=role)
    trust.check_pair(files.certificate, files.key)
    return (
        key_files.read(files.ca, is_secret=False),
        key_files.read(files.certificate, is_secret=False),
        key_files.read(files.key, is_secret=True),
    )
