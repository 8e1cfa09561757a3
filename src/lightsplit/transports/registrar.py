"""What the authority does for owners that keep their own keys: sign, renew, revoke.

A certificate that is replaced is kept: it stays valid until it expires, so revoking a
name must cover it too.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lightsplit.errors import ConfigError
from lightsplit.results import atomic
from lightsplit.transports import trust
from lightsplit.transports.authority import DAYS, validity_of
from lightsplit.transports.certificate_requests import CertificateRequest
from lightsplit.transports.certificates import (
    SERVER_COMMON_NAME,
    CertificateFolder,
    Made,
    check_client_name,
)
from lightsplit.transports.revocation import load_list, serials_of

SERVER = "server"  # no client can have this name


class Registrar:
    """Issues certificates without ever seeing a private key but the CA's own.

    Args:
        folder: of the authority.
    """

    def __init__(self, folder: CertificateFolder) -> None:
        self._folder = folder

    def sign(self, name: str, request: CertificateRequest, *, days: int = DAYS) -> Made:
        """Sign the request of the client ``name``, or of the server.

        A name whose certificate has another key must be revoked first.
        """
        is_server = name == SERVER
        request.check_is_of(SERVER_COMMON_NAME if is_server else name)
        path = self._path(name)
        if path.exists() and _spki(_current(path)) != _spki(request):
            raise ConfigError(
                f"{path} is for another key than {request.path}; if {name} has a new "
                f"key, revoke the old one first: lightsplit certs revoke "
                f"{self._folder.path} {name}"
            )
        return self._issue(name, request.public_key, request.names, days)

    def renew(self, name: str, *, days: int = DAYS) -> Made:
        """Issue the certificate of ``name`` again, for the same key and names."""
        path = self._path(name)
        if not path.exists():
            raise ConfigError(f"{path} does not exist: there is nothing to renew")
        current = _current(path)
        key = current.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise ConfigError(f"{path} has no key on an elliptic curve")
        return self._issue(name, key, _alternatives(current), days)

    def revoke(self, name: str) -> list[int]:
        """Put every certificate of a client on the list; return their serials."""
        folder, path = self._folder, self._path(name)
        self._keep_replaced(name)
        kept = sorted((folder.replaced / name).glob("*.crt"))
        serials = [_current(one).serial_number for one in kept]
        if not serials:
            raise ConfigError(f"{path} does not exist: there is nothing to revoke")
        now = datetime.now(UTC).replace(microsecond=0)
        number, before = self._list()
        revoked = {**dict.fromkeys(serials, now), **before}
        found = folder.authority().revoke(sorted(revoked.items()), number + 1)
        atomic.write_bytes(folder.revoked, found.public_bytes(Encoding.PEM))
        path.unlink(missing_ok=True)
        return serials

    def _issue(
        self,
        name: str,
        key: ec.EllipticCurvePublicKey,
        names: Sequence[x509.GeneralName],
        days: int,
    ) -> Made:
        is_server, path = name == SERVER, self._path(name)
        certificate = self._folder.authority().issue(
            SERVER_COMMON_NAME if is_server else name,
            key,
            role="server" if is_server else "client",
            validity=validity_of(days),
            names=names if is_server else (),
        )
        self._keep_replaced(name)
        atomic.write_bytes(path, certificate.public_bytes(Encoding.PEM))
        return Made(path, True, certificate.not_valid_after_utc)

    def _keep_replaced(self, name: str) -> None:
        """Copy the current certificate, if there is one, to those that were."""
        path = self._path(name)
        if path.exists():
            kept = self._folder.replaced / name / f"{_current(path).serial_number:x}"
            atomic.write_bytes(kept.with_suffix(".crt"), path.read_bytes())

    def _path(self, name: str) -> Path:
        if name == SERVER:
            return self._folder.server
        return self._folder.client(check_client_name(name))

    def _list(self) -> tuple[int, dict[int, datetime]]:
        """Return the number and the entries of the present list."""
        file = self._folder.revoked
        if not file.exists():
            return 0, {}
        found = load_list(file, self._folder.ca)
        return found.number, serials_of(found)


def _current(path: Path) -> x509.Certificate:
    return trust.load_certificates(path)[0]


def _spki(holder: x509.Certificate | CertificateRequest) -> bytes:
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if isinstance(holder, CertificateRequest):
        return holder.public_key.public_bytes(*spki)
    return holder.public_key().public_bytes(*spki)


def _alternatives(certificate: x509.Certificate) -> tuple[x509.GeneralName, ...]:
    try:
        extensions = certificate.extensions
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    return tuple(found.value)
