"""Who gets in to a server without turns: the same rules as to one that grants turns.

    stream ─► RevocationGate ─► Door ─► Visit ─► LoopSession

A stream that says nothing is cut off after a short time, and gives way to a newer one
of the same name before that.
"""

from collections.abc import Callable

from lightsplit.deployment.door import SECONDS_AT_THE_DOOR, Door
from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.deployment.revocation_gate import RevocationGate
from lightsplit.loops.loop_server import LoopServer
from lightsplit.loops.session import LoopSession
from lightsplit.protocol import Message
from lightsplit.transports import Peer, Session
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.revocation import Revocations


class Reception:
    """Opens the sessions of a server, and ends those that may not stay.

    Args:
        loops: the server.
        tls: its certificate files; in plain text nobody has a name or is revoked.
        seconds: from the opening of a stream to its complete Hello.
    """

    def __init__(
        self,
        loops: LoopServer,
        tls: TlsFiles | None,
        *,
        seconds: float = SECONDS_AT_THE_DOOR,
    ) -> None:
        self._loops = loops
        self._door = Door(loops.members)
        self._silent = IdleTimeout(seconds)
        self._gate = tls and RevocationGate(Revocations(tls.revoked, tls.ca), self._let)

    def open(self, peer: Peer) -> Session:
        """Return the session of a new stream, or refuse it."""
        return self._gate.open(peer) if self._gate else self._let(peer)

    def sweep(self) -> None:
        """End streams that say nothing, and those of revoked certificates."""
        for peer in self._silent.expired():
            peer.cancel()
        if self._gate:
            self._gate.sweep()

    def _let(self, peer: Peer) -> Session:
        self._door.enter(peer)
        self._silent.start(peer)
        return Visit(LoopSession(self._loops, peer), peer, self._hear, self._leave)

    def _hear(self, peer: Peer) -> None:
        self._silent.stop(peer)
        self._door.hear(peer)

    def _leave(self, peer: Peer) -> None:
        self._silent.stop(peer)
        self._door.leave(peer)


class Visit:
    """A session whose first message and whose end are noted at the door.

    Args:
        session: that answers.
        peer: the connection.
        hear: called with the peer before its first message is answered.
        leave: called with the peer at the end.
    """

    def __init__(
        self,
        session: Session,
        peer: Peer,
        hear: Callable[[Peer], None],
        leave: Callable[[Peer], None],
    ) -> None:
        self._session = session
        self._peer = peer
        self._hear = hear
        self._leave = leave
        self._was_heard = False
        self.replied = session.replied

    def handle(self, message: Message) -> Message | None:
        """Return the session's reply."""
        if not self._was_heard:
            self._hear(self._peer)
            self._was_heard = True
        return self._session.handle(message)

    def close(self) -> None:
        """Leave, and close the session."""
        self._leave(self._peer)
        self._session.close()
