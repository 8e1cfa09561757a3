"""A certificate authority for one group of data owners, and its certificates.

    FOLDER/ca.crt                everybody trusts certificates signed by it
           ca.key                signs; its holder can impersonate anyone; keep offline
           server.crt .key       valid for the names and addresses of the server
           clients/NAME.crt .key the client's identity is NAME, the common name
           replaced/NAME/*.crt   certificates that were renewed or revoked
           ca.crl                the list of those that are revoked

Existing files are kept. If a key has no certificate, a new one is issued for that key,
so a crash between the two files does no harm. Owners who make their keys themselves
send a request instead (``certificate_requests``), and then no key is here.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from lightsplit.errors import ConfigError
from lightsplit.transports import key_files, trust
from lightsplit.transports.authority import (
    CA_DAYS,
    DAYS,
    Authority,
    load_ec_key,
    self_signed,
    subject,
    validity_of,
)

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
SERVER_COMMON_NAME = "lightsplit server"  # no client can have this name
RESERVED_NAMES = ("ca", "server")  # client files may lie beside ca.crt

_CLIENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DNS_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DNS_NAME = re.compile(rf"({_DNS_LABEL}\.)*(?!\d+$){_DNS_LABEL}")


class Made(NamedTuple):
    """A certificate in the folder, and whether it is new."""

    path: Path
    is_new: bool
    expires: datetime


class CertificateFolder:
    """The folder of one authority; every method keeps existing files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = path / "ca.crt"
        self.ca_key = path / "ca.key"
        self.server = path / "server.crt"
        self.server_key = path / "server.key"
        self.revoked = path / "ca.crl"
        self.replaced = path / "replaced"

    def client(self, name: str) -> Path:
        """Return the path of a client's certificate."""
        return self.path / "clients" / f"{check_client_name(name)}.crt"

    def client_key(self, name: str) -> Path:
        """Return the path of a client's private key."""
        return self.path / "clients" / f"{check_client_name(name)}.key"

    def make_authority(self, *, days: int = CA_DAYS) -> Made:
        """Make the CA unless it exists."""
        if self.ca.exists():
            kept = trust.load_certificates(self.ca)
            trust.check_time(self.ca, kept)
            return Made(self.ca, False, kept[0].not_valid_after_utc)
        validity, key = validity_of(days), own_key(self.ca_key)
        return _write(self.ca, self_signed(key, validity))

    def make_server(
        self,
        names: Iterable[str] = (),
        *,
        days: int = DAYS,
        starts: datetime | None = None,
    ) -> Made:
        """Make the server's pair for ``names`` and for this machine."""
        wanted = [server_name(name) for name in dict.fromkeys((*LOCAL_NAMES, *names))]
        if self.server.exists():
            return self._kept_server(wanted)
        validity, authority = validity_of(days, starts), self.authority()
        certificate = authority.issue(
            SERVER_COMMON_NAME,
            own_key(self.server_key).public_key(),
            role="server",
            validity=validity,
            names=wanted,
        )
        return _write(self.server, certificate)

    def make_client(
        self, name: str, *, days: int = DAYS, starts: datetime | None = None
    ) -> Made:
        """Make the pair of the client called ``name``."""
        path = self.client(name)
        if path.exists():
            return self._kept_client(path, name)
        validity, authority = validity_of(days, starts), self.authority()
        certificate = authority.issue(
            name,
            own_key(self.client_key(name)).public_key(),
            role="client",
            validity=validity,
        )
        return _write(path, certificate)

    def authority(self) -> Authority:
        """Return the CA of this folder, which needs ``ca.key``."""
        return Authority.load(self.ca, self.ca_key)

    def _kept_server(self, wanted: Sequence[x509.GeneralName]) -> Made:
        kept = trust.check_certificate(self.server, ca=self.ca, role="server")
        extension = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        missing = [str(name.value) for name in wanted if name not in extension.value]
        if missing:
            raise ConfigError(
                f"{self.server} exists but is not valid for {', '.join(missing)}; "
                "remove it and run this again with all names of the server"
            )
        return Made(self.server, False, kept.not_valid_after_utc)

    def _kept_client(self, path: Path, name: str) -> Made:
        kept = trust.check_certificate(path, ca=self.ca, role="client")
        if kept.subject != subject(name):  # on a file system that ignores case
            raise ConfigError(
                f"{path} belongs to {kept.subject.rfc4514_string()!r}, not to {name!r}"
            )
        return Made(path, False, kept.not_valid_after_utc)


def check_client_name(name: str) -> str:
    """Return ``name`` if it is a valid name of a client."""
    if not _CLIENT_NAME.fullmatch(name) or name.lower() in RESERVED_NAMES:
        raise ConfigError(
            "a client's name has 1 to 64 letters, digits, '.', '_' or '-', begins with "
            f"a letter or digit, and is not {' or '.join(RESERVED_NAMES)}; got {name!r}"
        )
    return name


def server_name(name: str) -> x509.GeneralName:
    """Return a host name or an IP address as certificates hold it."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        if not _DNS_NAME.fullmatch(name) or len(name) > 253:
            raise ConfigError(
                "a server's name is a host name or an IP address, without a port; "
                f"got {name!r}"
            ) from None
        return x509.DNSName(name.lower())
    if "%" in name:
        raise ConfigError(f"a certificate cannot hold the zone in {name!r}")
    return x509.IPAddress(address)


def own_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in ``path``; make it if there is none."""
    if path.exists():
        return load_ec_key(path)
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_files.write_new(path, pem, is_secret=True)
    return key


def _write(path: Path, certificate: x509.Certificate) -> Made:
    key_files.write_new(path, certificate.public_bytes(Encoding.PEM), is_secret=False)
    return Made(path, True, certificate.not_valid_after_utc)
