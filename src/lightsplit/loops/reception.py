"""Who gets in to a server without turns: the same rules as to one that grants turns.

    stream ─► RevocationGate ─► Door ─► Visit ─► LoopSession

A stream that says nothing is cut off after a short time, and gives way to a newer one
of the same name before that.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lightsplit.deployment.door import SECONDS_AT_THE_DOOR, Door
from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.deployment.revocation_gate import RevocationGate
from lightsplit.deployment.run_control import as_run_error, stopping
from lightsplit.errors import RunError
from lightsplit.loops.loop_server import LoopServer
from lightsplit.loops.session import LoopSession
from lightsplit.protocol import Message
from lightsplit.transports import Peer, Session
from lightsplit.transports.credentials import TlsFiles
from lightsplit.transports.revocation import Revocations


class Reception:
    """Opens the sessions of a server, and ends those that must leave.

    Args:
        loops: the server.
        tls: its certificate files; in plain text nobody has a name or is revoked.
        seconds: from the opening of a stream to its complete Hello.

    Attributes:
        failure: the server's own error after which it cannot continue, if any.
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
        self.failure: RunError | None = None
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
        return Visit(LoopSession(self._loops, peer), peer, self)

    @contextmanager
    def own_errors_end_it(self) -> Iterator[None]:
        """Note an error of the disk or the saves; clients only hear of the stop.

        Any other error concerns only the client whose message caused it.
        """
        try:
            yield
        except (OSError, RunError) as error:
            self.failure = self.failure or as_run_error(error)
            raise stopping() from error

    def hear(self, peer: Peer) -> None:
        """Note that a message has arrived on a stream."""
        self._silent.stop(peer)
        self._door.hear(peer)

    def leave(self, peer: Peer) -> None:
        """Note that a stream has ended."""
        self._silent.stop(peer)
        self._door.leave(peer)


class Visit:
    """A session whose first message, errors and end are noted at the reception.

    Args:
        session: that answers.
        peer: the connection.
        reception: that opened it.
    """

    def __init__(self, session: Session, peer: Peer, reception: Reception) -> None:
        self._session = session
        self._peer = peer
        self._reception = reception
        self._was_heard = False

    def handle(self, message: Message) -> Message | None:
        """Return the session's reply."""
        if not self._was_heard:
            self._reception.hear(self._peer)
            self._was_heard = True
        with self._reception.own_errors_end_it():
            return self._session.handle(message)

    def replied(self) -> None:
        """Do the work that can wait until the reply is on its way."""
        with self._reception.own_errors_end_it():
            self._session.replied()

    def close(self) -> None:
        """Leave, and close the session."""
        self._reception.leave(self._peer)
        with self._reception.own_errors_end_it():
            self._session.close()
