"""A client's line to a server without turns, which is opened again when it breaks.

    ask ─► call ─► reply
            └─► broken ─► Hello, Update("again") ─► the messages that the server has not
                          got, in their order ─► the reply to the last one

The line remembers every message since the server's last save. A server that was killed
gets them again and applies each update once.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from lightsplit.deployment.join_options import log_away
from lightsplit.deployment.pauses import Pauses
from lightsplit.errors import ProtocolError, RunError, TransportError
from lightsplit.protocol import (
    Message,
    OutputGradient,
    Reply,
    Request,
    frame_bytes,
)
from lightsplit.protocol.control import Hello, Update, Updated, Welcome
from lightsplit.transports import Session

REMEMBERED_BYTES = 256 * 2**20


class Connection(Protocol):
    """One connection to the server."""

    def call(self, message: Message) -> Message:
        """Return the reply; raise TransportError if another connection may help."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class _Remembered(NamedTuple):
    update: int  # the number of the update that the message belongs to
    message: Message


class LoopLine:
    """Talks to the server for one client, over as many connections as needed.

    Args:
        connect: opens a new connection.
        hello: introduces the client.
        give_up_seconds: how long the client tries to reach the server again.

    Attributes:
        index: of the client.
        run: the run's random name.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        hello: Hello,
        *,
        give_up_seconds: float = 600.0,
    ) -> None:
        self._connect = connect
        self._hello = hello
        self._pauses = Pauses(give_up_seconds)
        self._told = ""
        self._log: list[_Remembered] = []
        self._log_bytes = 0
        self._made = 0
        self._connection: Connection | None = None
        self.index, self.run = 0, ""
        try:
            self._reach()
        except BaseException:  # refused at the door: leave no connection behind
            self.close()
            raise

    def start(self, made: int) -> Updated:
        """Say how many updates this client has made, and where it goes on."""
        self._log.clear()
        self._log_bytes, self._made = 0, made
        return self._updated(self._ask(Update("start", made)))

    def send(self, request: Request) -> Reply:
        """Return the reply to a message of a step."""
        if isinstance(request, OutputGradient) or request.is_training:
            self._remember(request)
        return self._ask(request)  # type: ignore[return-value]

    def apply(self, rate: float, base_rate: float) -> None:
        """Ask the server to update its weights, as the client has updated its own."""
        update = Update("apply", self._made + 1, rate, base_rate)
        self._remember(update)
        self._forget_saved(self._updated(self._ask(update)))
        self._made += 1
        if self._log_bytes > REMEMBERED_BYTES:
            self.keep()

    def keep(self) -> None:
        """Ask the server to save its weights."""
        self._forget_saved(self._updated(self._ask(Update("keep", self._made))))

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _remember(self, message: Request | Update) -> None:
        self._log.append(_Remembered(self._made + 1, message))
        self._log_bytes += frame_bytes(message)

    def _forget_saved(self, updated: Updated) -> None:
        self._log = [one for one in self._log if one.update > updated.saved]
        self._log_bytes = sum(frame_bytes(one.message) for one in self._log)

    def _ask(self, message: Message) -> Message:
        is_broken = False
        while True:
            try:
                if is_broken:
                    self._reach()
                    for one in self._missing(message):
                        self._call(one)
                reply = self._call(message)
                self._pauses.restart()
                self._told = ""
                return reply
            except TransportError as error:
                self._go_on(error)
                is_broken = True

    def _missing(self, message: Message) -> list[Message]:
        """Return what the server has to get before ``message`` makes sense to it."""
        is_start = isinstance(message, Update) and message.action == "start"
        if is_start:
            return []
        is_apply = isinstance(message, Update) and message.action == "apply"
        asked = Update("again", self._made + is_apply)
        found = self._updated(self._call(asked))
        waiting = [one for one in self._log if one.update > found.number]
        if found.number < self._made and (
            not waiting or waiting[0].update > found.number + 1
        ):
            raise RunError(
                f"the server stands at update {found.number} of this client, which "
                f"stands at {self._made}: start the server with the folder of its last "
                "save"
            )
        late = [one.message for one in waiting[found.messages :]]
        return late[:-1] if late and late[-1] is message else late

    def _reach(self) -> None:
        """Connect, with growing pauses, and introduce the client."""
        while True:
            self._pauses.before_try()
            try:
                self._introduce()
                self._pauses.note_open()
                return
            except TransportError as error:
                self._go_on(error)

    def _go_on(self, error: TransportError) -> None:
        """Log that the server is away, each reason once; raise after too long."""
        if self._pauses.is_time_up:
            raise error
        if str(error) != self._told:
            log_away(error)
            self._told = str(error)

    def _introduce(self) -> None:
        self.close()
        self._connection = self._connect()
        welcome = self._call(self._hello)
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        if self.run not in ("", welcome.run):
            raise RunError(
                f"the server has begun another run, {welcome.run[:8]}: start it with "
                f"the folder of run {self.run[:8]}"
            )
        self.index, self.run = welcome.index, welcome.run

    def _call(self, message: Message) -> Message:
        if self._connection is None:
            raise TransportError("not connected")
        return self._connection.call(message)

    def _updated(self, reply: Message) -> Updated:
        if not isinstance(reply, Updated):
            raise ProtocolError(f"expected Updated, got {type(reply).__name__}")
        return reply


class LocalConnection:
    """A connection to a server in the same process.

    Args:
        session: that answers.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, message: Message) -> Message:
        """Return the reply."""
        try:
            reply = self._session.handle(message)
        except ProtocolError as error:
            if error.code == "stale-turn":  # as over the network: asking again helps
                raise TransportError(str(error), code=error.code) from error
            raise
        self._session.replied()
        if reply is None:
            raise ProtocolError("expected a reply, got none")
        return reply

    def close(self) -> None:
        """End the session."""
        self._session.close()
