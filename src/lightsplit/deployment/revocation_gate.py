"""Keeps clients with revoked certificates out, also those that are in already."""

import threading

from lightsplit.errors import ProtocolError
from lightsplit.transports import Peer, Session
from lightsplit.transports.peers import OpenSession
from lightsplit.transports.revocation import Revocations


class RevocationGate:
    """Stands before a run: a revoked client is refused, and its open stream closed.

    Args:
        revocations: of the authority.
        open_session: makes the session of a client that may pass.
    """

    def __init__(self, revocations: Revocations, open_session: OpenSession) -> None:
        self._revocations = revocations
        self._open_session = open_session
        self._lock = threading.Lock()
        self._inside: set[Peer] = set()

    def open(self, peer: Peer) -> Session:
        """Return the session of a client, unless its certificate is revoked."""
        with self._lock:
            self._inside.add(peer)
        peer.when_gone(lambda: self._forget(peer))
        self._revocations.refresh()
        if self._is_revoked(peer):
            raise ProtocolError(
                f"the certificate of {peer.name!r} with serial {peer.serial:x} is "
                "revoked; ask the authority for a new one",
                code="revoked",
            )
        return self._open_session(peer)

    def sweep(self) -> None:
        """Read the list again if it changed, and end the streams of those on it."""
        if not self._revocations.refresh():
            return
        with self._lock:
            inside = list(self._inside)
        for peer in inside:
            if self._is_revoked(peer):
                peer.cancel()

    def _is_revoked(self, peer: Peer) -> bool:
        return peer.serial is not None and peer.serial in self._revocations

    def _forget(self, peer: Peer) -> None:
        with self._lock:
            self._inside.discard(peer)
