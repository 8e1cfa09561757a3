"""Requests for certificates: the key is made at its owner and never leaves it.

    owner      make_client_request ─► NAME.key (stays), NAME.csr (goes to the authority)
    authority  CertificateRequest.load ─► Registrar signs it ─► NAME.crt (goes back)

A request proves that its sender has the key. It does not prove who the sender is: the
authority compares the fingerprint with the owner over another channel.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from lightsplit.errors import ConfigError
from lightsplit.transports import key_files
from lightsplit.transports.authority import subject
from lightsplit.transports.certificates import (
    LOCAL_NAMES,
    SERVER_COMMON_NAME,
    check_client_name,
    own_key,
    server_name,
)


class CertificateRequest(NamedTuple):
    """What somebody asks the authority to sign.

    Attributes:
        path: of the file.
        common_name: a client's name, or that of every server.
        public_key: whose private key the sender has.
        names: host names and addresses of a server; a client has none.
    """

    path: Path
    common_name: str
    public_key: ec.EllipticCurvePublicKey
    names: tuple[x509.GeneralName, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a request; refuse one that its own key did not sign."""
        try:
            found = x509.load_pem_x509_csr(key_files.read(path, is_secret=False))
            (name,) = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            key, is_valid = found.public_key(), found.is_signature_valid
        except ValueError as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"{path} is not a request made by 'lightsplit certs request'"
            ) from error
        if not isinstance(key, ec.EllipticCurvePublicKey) or not is_valid:
            raise ConfigError(f"{path} is not signed by a key on an elliptic curve")
        return cls(path, str(name.value), key, _alternatives(found))

    @property
    def fingerprint(self) -> str:
        """A name of the key, for owner and authority to compare."""
        spki = self.public_key.public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(spki).hexdigest()[:16]

    def check_is_of(self, common_name: str) -> None:
        """Raise unless the request is for this name."""
        if self.common_name != common_name:
            raise ConfigError(
                f"expected a request of {common_name!r}, got one of "
                f"{self.common_name!r} in {self.path}"
            )


def make_client_request(folder: Path, name: str) -> CertificateRequest:
    """Make a client's key and the request for its certificate."""
    return _make(folder, check_client_name(name), check_client_name(name), ())


def make_server_request(folder: Path, names: Iterable[str]) -> CertificateRequest:
    """Make the server's key and the request for its certificate."""
    wanted = [server_name(name) for name in dict.fromkeys((*LOCAL_NAMES, *names))]
    return _make(folder, "server", SERVER_COMMON_NAME, wanted)


def _make(
    folder: Path, file: str, common_name: str, names: Iterable[x509.GeneralName]
) -> CertificateRequest:
    key = own_key(folder / f"{file}.key")
    builder = x509.CertificateSigningRequestBuilder(subject(common_name))
    if names:
        alternatives = x509.SubjectAlternativeName(names)
        builder = builder.add_extension(alternatives, critical=False)
    pem = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    path = folder / f"{file}.csr"
    path.unlink(missing_ok=True)  # a request is made again for the same key
    key_files.write_new(path, pem, is_secret=False)
    return CertificateRequest.load(path)


def _alternatives(
    request: x509.CertificateSigningRequest,
) -> tuple[x509.GeneralName, ...]:
    try:
        extensions = request.extensions
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(found.value)
