"""Checks of certificate files before anybody connects with them.

A failed TLS handshake says little; each check names the file and the fault.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from lightsplit.errors import ConfigError
from lightsplit.transports import key_files

ROLES = {
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
}


def check_certificate(path: Path, *, ca: Path, role: str) -> x509.Certificate:
    """Return the certificate if it is valid now, fits the role and ``ca`` signed it."""
    chain, roots = load_certificates(path), load_certificates(ca)
    check_time(path, chain)
    check_time(ca, roots)
    if not _is_for(chain[0], role):
        raise ConfigError(f"{path} is not the certificate of a {role}")
    if not _leads_to(chain, roots):
        raise ConfigError(f"{path} was not signed by the CA in {ca}")
    return chain[0]


def check_is_trusted(
    certificate: x509.Certificate, *, ca: Path, role: str
) -> x509.Certificate:
    """Return a certificate that somebody else sent, if it is as good as one's own."""
    where = Path(certificate.subject.rfc4514_string())
    check_time(where, [certificate])
    if not _is_for(certificate, role):
        raise ConfigError(f"{where} is not the certificate of a {role}")
    if not _leads_to([certificate], load_certificates(ca)):
        raise ConfigError(f"{where} was not signed by the CA in {ca}")
    return certificate


def check_pair(certificate: Path, key: Path) -> None:
    """Raise unless the private key belongs to the certificate."""
    public = load_certificates(certificate)[0].public_key()
    private = load_key(key)
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(*spki) != public.public_bytes(*spki):
        raise ConfigError(f"the key {key} does not belong to {certificate}")


def check_time(path: Path, certificates: Iterable[x509.Certificate]) -> None:
    """Raise unless every certificate is valid at this moment."""
    now = datetime.now(UTC)
    for certificate in certificates:
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now > end:
            raise ConfigError(
                f"{path} expired on {end:%Y-%m-%d %H:%M} UTC; 'lightsplit certs renew' "
                "at the authority, which has ca.key, makes a new one for the same key"
            )
        if now < begin:
            raise ConfigError(
                f"{path} is valid from {begin:%Y-%m-%d %H:%M} UTC, but this machine's "
                f"clock says {now:%Y-%m-%d %H:%M}"
            )


def load_certificates(path: Path) -> list[x509.Certificate]:
    """Return the certificates in a PEM file, at least one."""
    try:
        return x509.load_pem_x509_certificates(key_files.read(path, is_secret=False))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{path} is not a certificate in PEM format") from error


def load_key(path: Path) -> PrivateKeyTypes:
    """Return the private key in a PEM file that nobody else can read."""
    content = key_files.read(path, is_secret=True)
    try:
        return load_pem_private_key(content, password=None)
    except TypeError as error:
        raise ConfigError(f"{path} is protected by a password") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{path} is not a private key in PEM format") from error


def _is_for(certificate: x509.Certificate, role: str) -> bool:
    try:
        extensions = certificate.extensions
        usages = extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        return True  # without the extension any use is allowed (RFC 5280, 4.2.1.12)
    return ROLES[role] in usages.value


def _leads_to(chain: list[x509.Certificate], roots: list[x509.Certificate]) -> bool:
    steps = pairwise(chain)
    return all(_signed(*step) for step in steps) and any(
        _signed(chain[-1], root) for root in roots
    )


def _signed(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
