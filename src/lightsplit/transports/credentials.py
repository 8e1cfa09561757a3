"""Certificates in gRPC's form: both ends authenticate, or no message is sent.

Files are checked before any connection is tried, because a failed handshake tells
neither end why. Plain text is for loopback, or for users who explicitly ask for it.
"""

import ipaddress
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from cryptography import x509

from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.transports import key_files, trust
from lightsplit.transports.certificates import CertificateFolder, check_client_name

if TYPE_CHECKING:
    import grpc


_LOG = logging.getLogger(__name__)


class TlsFiles(NamedTuple):
    """The three PEM files that one end needs."""

    ca: Path
    certificate: Path
    key: Path

    @property
    def revoked(self) -> Path:
        """The list of revoked certificates, beside the CA's certificate."""
        return self.ca.with_name("ca.crl")

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
    """Return credentials that admit only clients with a certificate of the CA.

    The files are read again when they change, so that a renewed certificate is used
    from the next connection on.
    """
    import grpc

    renewed = RenewedFiles(files)

    def fetch() -> "grpc.ServerCertificateConfiguration | None":
        # gRPC asks in every handshake and replaces what it has by the answer. It does
        # so without a lock: replacing it each time crashes under many connections.
        return _configuration(renewed.content) if renewed.refresh() else None

    return grpc.dynamic_ssl_server_credentials(
        _configuration(renewed.content),
        fetch,  # type: ignore[arg-type]  # the stub leaves out None, for no change
        require_client_authentication=True,
    )


def _configuration(
    content: tuple[bytes, bytes, bytes],
) -> "grpc.ServerCertificateConfiguration":
    import grpc

    ca, certificate, key = content
    return grpc.ssl_server_certificate_configuration(
        [(key, certificate)], root_certificates=ca
    )


class RenewedFiles:
    """The server's files, read again when one of them changes.

    Files that do not fit together, perhaps because only one of them is replaced yet,
    are not taken; those of before stay in use.

    Attributes:
        content: CA, certificate and key, as they were last good.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._stamps()
        self.content = _read(files, role="server")

    def refresh(self) -> bool:
        """Read the files again if one changed; return whether there is a new set."""
        stamps = self._stamps()
        if stamps == self._seen:
            return False
        self._seen = stamps
        try:
            self.content = _read(self._files, role="server")
        except ConfigError as error:
            _LOG.warning("%s; the certificate of before stays in use", error)
            return False
        return True

    def _stamps(self) -> list[tuple[int, int] | None]:
        return [_stamp(file) for file in self._files]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def channel_credentials(files: TlsFiles) -> "grpc.ChannelCredentials":
    """Return credentials that trust only a server with a certificate of the CA."""
    import grpc

    ca, certificate, key = _read(files, role="client")
    return grpc.ssl_channel_credentials(
        root_certificates=ca, private_key=key, certificate_chain=certificate
    )


def peer_name(context: "grpc.ServicerContext") -> str:
    """Return the name in the certificate that the client authenticated with.

    gRPC has already verified the certificate; a connection without one has no name.
    """
    properties = cast("Mapping[str, Sequence[bytes]]", context.auth_context())
    names = properties.get("x509_common_name", ())
    if len(names) != 1:
        raise ProtocolError(
            f"expected one name in the client's certificate, got {len(names)}"
        )
    try:
        return check_client_name(names[0].decode("ascii"))
    except ValueError as error:  # decoding failed, or the name is not valid
        raise ProtocolError(
            f"the client's certificate holds {names[0]!r}, which is no client's name"
        ) from error


def peer_serial(context: "grpc.ServicerContext") -> int:
    """Return the serial number of the client's certificate."""
    properties = cast("Mapping[str, Sequence[bytes]]", context.auth_context())
    (pem,) = properties["x509_pem_cert"]
    return x509.load_pem_x509_certificate(pem).serial_number


def check_plain_text_allowed(address: str, *, insecure: bool) -> None:
    """Raise unless ``address`` is on this machine or the user asked for plain text.

    Example:
        >>> check_plain_text_allowed("127.0.0.1:50051", insecure=False)
    """
    if insecure or is_loopback(address):
        return
    raise ConfigError(
        f"{address!r} is not on this machine and needs certificates: make them with "
        "'lightsplit certs FOLDER'; or give --insecure, and anybody on the path can "
        "read and change all messages, and anybody can join under any name"
    )


def is_loopback(address: str) -> bool:
    """Return whether ``HOST``, ``HOST:PORT`` or ``[HOST]:PORT`` is this machine.

    Doubtful addresses, such as other schemes of gRPC, count as elsewhere.

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
