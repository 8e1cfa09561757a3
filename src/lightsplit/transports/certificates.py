"""A certificate authority for one group of data owners, and what it signs.

    FOLDER/ca.crt                everybody trusts what this signed
           ca.key                signs; whoever has it can be anybody: keep it offline
           server.crt .key       valid for the names and addresses of the server
           clients/NAME.crt .key the client's identity is NAME, the common name

Keys are on the curve P-256: every TLS stack takes them (gRPC's offers no Ed25519). What
exists is kept: a certificate whose key is there but which is not is made anew for that
key, so a removed ``.crt`` renews and a crash between the two files does no harm.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from lightsplit.errors import ConfigError
from lightsplit.transports import key_files, trust

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
SERVER_COMMON_NAME = "lightsplit server"  # not a possible name of a client
RESERVED_NAMES = ("ca", "server")  # a client has its files beside ca.crt
DAYS = 365
CA_DAYS = 3650
MAX_DAYS = 36500
CLOCK_SKEW = timedelta(hours=1)

_CLIENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DNS_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DNS_NAME = re.compile(rf"({_DNS_LABEL}\.)*(?!\d+$){_DNS_LABEL}")


class Made(NamedTuple):
    """A certificate that is there now, and whether it was before."""

    path: Path
    is_new: bool
    expires: datetime


class CertificateFolder:
    """The folder of one authority; every method keeps what exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = path / "ca.crt"
        self.ca_key = path / "ca.key"
        self.server = path / "server.crt"
        self.server_key = path / "server.key"

    def client(self, name: str) -> Path:
        """Return where the certificate of a client lies."""
        return self.path / "clients" / f"{check_client_name(name)}.crt"

    def client_key(self, name: str) -> Path:
        """Return where the private key of a client lies."""
        return self.path / "clients" / f"{check_client_name(name)}.key"

    def make_authority(self, *, days: int = CA_DAYS) -> Made:
        """Make the CA unless there is one."""
        if self.ca.exists():
            kept = trust.load_certificates(self.ca)
            trust.check_time(self.ca, kept)
            return Made(self.ca, False, kept[0].not_valid_after_utc)
        validity, key = _validity(days), _key(self.ca_key)
        # Named after its key, so a CA that was renewed still fits what it signed.
        name = _name(f"lightsplit CA {_key_id(key).digest.hex()[:8]}")
        builder = (
            _builder(name, key, validity)
            .issuer_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(is_ca=True), critical=True)
        )
        return _write(self.ca, builder.sign(key, SHA256()))

    def make_server(
        self,
        names: Iterable[str] = (),
        *,
        days: int = DAYS,
        starts: datetime | None = None,
    ) -> Made:
        """Make the server's pair for ``names`` and for this machine."""
        wanted = [_server_name(name) for name in dict.fromkeys((*LOCAL_NAMES, *names))]
        if self.server.exists():
            return self._kept_server(wanted)
        validity, authority = _validity(days, starts), self._authority()
        builder = _builder(
            _name(SERVER_COMMON_NAME), _key(self.server_key), validity
        ).add_extension(x509.SubjectAlternativeName(wanted), critical=False)
        return _write(self.server, authority.sign(builder, role="server"))

    def make_client(
        self, name: str, *, days: int = DAYS, starts: datetime | None = None
    ) -> Made:
        """Make the pair of the client called ``name``."""
        path = self.client(name)
        if path.exists():
            return self._kept_client(path, name)
        validity, authority = _validity(days, starts), self._authority()
        builder = _builder(_name(name), _key(self.client_key(name)), validity)
        return _write(path, authority.sign(builder, role="client"))

    def _kept_server(self, wanted: Sequence[x509.GeneralName]) -> Made:
        kept = trust.check_certificate(self.server, ca=self.ca, role="server")
        extension = kept.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        missing = [str(name.value) for name in wanted if name not in extension.value]
        if missing:
            raise ConfigError(
                f"{self.server} exists and is not valid for {', '.join(missing)}; "
                "remove it and run this again with all names of the server"
            )
        return Made(self.server, False, kept.not_valid_after_utc)

    def _kept_client(self, path: Path, name: str) -> Made:
        kept = trust.check_certificate(path, ca=self.ca, role="client")
        if kept.subject != _name(name):  # a file system that ignores case
            raise ConfigError(
                f"{path} belongs to {kept.subject.rfc4514_string()!r}, not to {name!r}"
            )
        return Made(path, False, kept.not_valid_after_utc)

    def _authority(self) -> "_Authority":
        trust.check_pair(self.ca, self.ca_key)
        return _Authority(trust.load_certificates(self.ca)[0], _key(self.ca_key))


class _Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def sign(self, builder: x509.CertificateBuilder, *, role: str) -> x509.Certificate:
        extensions = self.certificate.extensions
        own_id = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
            own_id
        )
        return (
            builder.issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([trust.ROLES[role]]), critical=False)
            .add_extension(issuer_id, critical=False)
            .sign(self.key, SHA256())
        )


def check_client_name(name: str) -> str:
    """Return ``name`` if a client can be called that."""
    if not _CLIENT_NAME.fullmatch(name) or name.lower() in RESERVED_NAMES:
        raise ConfigError(
            "a client's name has 1 to 64 letters, digits, '.', '_' or '-', begins with "
            f"a letter or digit, and is not {' or '.join(RESERVED_NAMES)}; got {name!r}"
        )
    return name


def _server_name(name: str) -> x509.GeneralName:
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


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in ``path``, made now if there is none."""
    if path.exists():
        key = trust.load_key(path)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"{path} is not a key on an elliptic curve")
        return key
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key_files.write_new(path, pem, is_secret=True)
    return key


def _write(path: Path, certificate: x509.Certificate) -> Made:
    key_files.write_new(path, certificate.public_bytes(Encoding.PEM), is_secret=False)
    return Made(path, True, certificate.not_valid_after_utc)


def _builder(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    validity: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
        .add_extension(_key_id(key), critical=False)
    )


def _validity(days: int, starts: datetime | None = None) -> tuple[datetime, datetime]:
    if not 1 <= days <= MAX_DAYS:
        raise ConfigError(f"days must be between 1 and {MAX_DAYS}, got {days}")
    begin = starts or datetime.now(UTC)
    return begin - CLOCK_SKEW, begin + timedelta(days=days)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_id(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
