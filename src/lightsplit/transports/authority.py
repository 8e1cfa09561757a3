"""Signs certificates and the list of those that are revoked, with the CA's key.

Keys are on the curve P-256, which every TLS stack accepts (gRPC's offers no Ed25519).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from lightsplit.errors import ConfigError
from lightsplit.transports import trust

DAYS = 365
CA_DAYS = 3650
MAX_DAYS = 36500
CLOCK_SKEW = timedelta(hours=1)

Validity = tuple[datetime, datetime]


class Authority(NamedTuple):
    """A CA that can sign.

    Attributes:
        certificate: that everybody trusts.
        key: that belongs to it.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Self:
        """Return the CA in these files."""
        trust.check_pair(certificate, key)
        return cls(trust.load_certificates(certificate)[0], load_ec_key(key))

    def issue(
        self,
        common_name: str,
        public_key: ec.EllipticCurvePublicKey,
        *,
        role: str,
        validity: Validity,
        names: Sequence[x509.GeneralName] = (),
    ) -> x509.Certificate:
        """Return a certificate for a server or a client, which cannot sign others."""
        extensions = self.certificate.extensions
        own_id = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        issuer_id = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
            own_id
        )
        builder = certificate_builder(subject(common_name), public_key, validity)
        if names:
            alternatives = x509.SubjectAlternativeName(names)
            builder = builder.add_extension(alternatives, critical=False)
        return (
            builder.issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([trust.ROLES[role]]), critical=False)
            .add_extension(issuer_id, critical=False)
            .sign(self.key, SHA256())
        )

    def revoke(
        self, revoked: Sequence[tuple[int, datetime]], number: int
    ) -> x509.CertificateRevocationList:
        """Return the list of revoked certificates, by serial number and time.

        Args:
            revoked: all of them, those of earlier lists among them.
            number: of the list; a later list has a higher one.
        """
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.certificate.subject)
            .last_update(now)
            .next_update(self.certificate.not_valid_after_utc)
            .add_extension(x509.CRLNumber(number), critical=False)
        )
        for serial, since in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(serial)
            builder = builder.add_revoked_certificate(
                entry.revocation_date(since).build()
            )
        return builder.sign(self.key, SHA256())


def self_signed(
    key: ec.EllipticCurvePrivateKey, validity: Validity
) -> x509.Certificate:
    """Return the certificate of a new CA.

    It is named after its key, so that a renewed CA still matches what it signed.
    """
    own = key.public_key()
    name = subject(f"lightsplit CA {key_id(own).digest.hex()[:8]}")
    return (
        certificate_builder(name, own, validity)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(is_ca=True), critical=True)
        .sign(key, SHA256())
    )


def certificate_builder(
    name: x509.Name, key: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    """Return what every certificate has, whoever signs it."""
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity[0])
        .not_valid_after(validity[1])
        .add_extension(key_id(key), critical=False)
    )


def validity_of(days: int, starts: datetime | None = None) -> Validity:
    """Return the times between which a certificate is valid."""
    if not 1 <= days <= MAX_DAYS:
        raise ConfigError(f"days must be between 1 and {MAX_DAYS}, got {days}")
    begin = starts or datetime.now(UTC)
    return begin - CLOCK_SKEW, begin + timedelta(days=days)


def subject(common_name: str) -> x509.Name:
    """Return the subject with this common name and nothing else."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def key_id(key: ec.EllipticCurvePublicKey) -> x509.SubjectKeyIdentifier:
    """Return the name of a public key."""
    return x509.SubjectKeyIdentifier.from_public_key(key)


def load_ec_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in ``path``, which is on an elliptic curve."""
    key = trust.load_key(path)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} is not a key on an elliptic curve")
    return key


def key_usage(*, is_ca: bool) -> x509.KeyUsage:
    """Return what the key of a CA, or of anybody else, may be used for."""
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
