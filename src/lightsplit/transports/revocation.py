"""The list of revoked certificates, read again whenever its file changes.

The list is an ordinary X.509 list, signed by the authority. A server that cannot read a
changed list keeps the last good one, because an attacker who can spoil the file must
not be able to let anybody in again. For the same reason a list with a lower number
than the last one is not taken.
"""

import logging
import threading
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from lightsplit.errors import ConfigError
from lightsplit.transports import key_files, trust

_LOG = logging.getLogger(__name__)


class RevokedList(NamedTuple):
    """A list that its authority signed.

    Attributes:
        number: a later list has a higher one.
        entries: serial numbers, and since when they are revoked.
    """

    number: int
    entries: tuple[tuple[int, datetime], ...]


def load_list(path: Path, ca: Path) -> RevokedList:
    """Return the list in a file; refuse one that ``ca`` did not sign."""
    try:
        found = x509.load_pem_x509_crl(key_files.read(path, is_secret=False))
        numbered = found.extensions.get_extension_for_class(x509.CRLNumber)
    except (ValueError, x509.ExtensionNotFound) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{path} is not a list of revoked certificates in PEM format"
        ) from error
    root = trust.load_certificates(ca)[0]
    if not found.is_signature_valid(root.public_key()):  # type: ignore[arg-type]
        raise ConfigError(f"{path} was not signed by the CA in {ca}")
    entries = tuple((one.serial_number, one.revocation_date_utc) for one in found)
    return RevokedList(numbered.value.crl_number, entries)


def serials_of(revoked: RevokedList) -> dict[int, datetime]:
    """Return the serial numbers, and since when they are revoked."""
    return dict(revoked.entries)


class Revocations:
    """The revoked certificates of an authority, as its file says now.

    Args:
        file: of the list; it need not exist yet.
        ca: that signs the list.
    """

    def __init__(self, file: Path, ca: Path) -> None:
        self._file = file
        self._ca = ca
        self._lock = threading.Lock()
        self._seen = self._stamp()
        self._newest = RevokedList(-1, ())
        if self._seen is not None:
            self._newest = load_list(file, ca)
        self._serials = frozenset(serials_of(self._newest))

    def __contains__(self, serial: int) -> bool:
        return serial in self._serials

    def refresh(self) -> bool:
        """Read the list again if its file changed; return whether that is so."""
        with self._lock:
            stamp = self._stamp()
            if stamp == self._seen:
                return False
            self._seen = stamp
            try:
                self._take(load_list(self._file, self._ca))
            except ConfigError as error:
                _LOG.warning("%s; the list of before stays in force", error)
            return True

    def _take(self, found: RevokedList) -> None:
        if found.number < self._newest.number:
            raise ConfigError(
                f"{self._file} is older than the list of before: expected at least "
                f"number {self._newest.number}, got {found.number}"
            )
        self._newest, self._serials = found, frozenset(serials_of(found))

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
