"""A client's line to the server, which is opened again whenever it breaks.

exchange ─► call ─► reply
             └─► broken ─► reach ─► the same turn ─► the step again, from its code
                              └─► another turn ─► TurnLostError
"""

from collections.abc import Callable
from typing import Protocol

from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.pauses import Pauses
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.protocol import (
    CodeMessage,
    Message,
    OutputGradient,
    Recall,
    Reply,
    Request,
)
from lightsplit.protocol.control import (
    Finished,
    Grant,
    Heard,
    Hello,
    Ready,
    TurnDone,
    Welcome,
)

Instruction = Grant | Finished


class Line(Protocol):
    """One connection to the server."""

    def call(self, message: Message) -> Message:
        """Return the reply; raise TransportError if another connection may help."""
        ...

    def finish(self, last: Message) -> None:
        """Send a message that has no reply, and end the connection in good order."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class TurnLostError(Exception):
    """The server has left this client's turn for another one.

    Attributes:
        instruction: the server's, for this client.
    """

    def __init__(self, instruction: Instruction) -> None:
        super().__init__(instruction)
        self.instruction = instruction


class ReconnectingLine:
    """Introduces a client to the server and asks again after a broken connection.

    Args:
        connect: opens a new connection.
        hello: introduces the client.
        take_place: gets the server's welcome; returns the client's batches per epoch.
        options: of the client.
    """

    def __init__(
        self,
        connect: Callable[[], Line],
        hello: Hello,
        take_place: Callable[[Welcome], int],
        options: JoinOptions,
    ) -> None:
        self._connect = connect
        self._hello = hello
        self._take_place = take_place
        self._options = options
        self._pauses = Pauses(options.give_up_seconds)
        self._line: Line | None = None
        self._code: CodeMessage | Recall | None = None

    def reach(self) -> Instruction:
        """Connect, with growing pauses, and return the server's instruction."""
        while True:
            self._pauses.before_try()
            try:
                return self._introduce()
            except TransportError as error:
                if self._pauses.is_time_up:
                    raise
                self._options.away(error)

    def ask(self, message: Ready | TurnDone) -> Instruction:
        """Say that the client is free and return the server's next instruction."""
        instruction = self._call(message)
        if not isinstance(instruction, Instruction):
            raise ProtocolError(
                f"expected Grant or Finished, got {type(instruction).__name__}"
            )
        self._options.meter.add("hand_off", len(instruction.side))
        return instruction

    def exchange(
        self, request: Request, is_same_turn: Callable[[Instruction], bool]
    ) -> Reply:
        """Return the reply to a message of a step, over as many lines as needed.

        Raises:
            TurnLostError: after a broken connection the server wants something else.
        """
        if isinstance(request, CodeMessage | Recall) and request.is_training:
            self._code = request
        messages = [request]
        while True:
            try:
                reply = [self._call(message) for message in messages][-1]
                self._pauses.restart()
                return reply  # type: ignore[return-value]
            except TransportError as error:
                if self._pauses.is_time_up:
                    raise
                self._options.away(error)
                instruction = self.reach()
                if not is_same_turn(instruction):
                    raise TurnLostError(instruction) from None
                messages = self._from_the_code(request)

    def finish(self) -> None:
        """Acknowledge the end of the run."""
        if self._line is not None:
            self._line.finish(Heard())

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._line is not None:
            self._line.close()

    def _from_the_code(self, request: Request) -> list[Request]:
        """Return the messages of a step up to ``request``.

        The server undid the open step when the connection broke: a gradient needs its
        code again.
        """
        if isinstance(request, OutputGradient) and self._code is not None:
            return [self._code, request]
        return [request]

    def _introduce(self) -> Instruction:
        self.close()
        self._line = self._connect()
        welcome = self._call(self._hello)
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        self._pauses.note_open()
        self._options.meter.add("setup", len(self._hello.contract.encode()))
        return self.ask(Ready(self._take_place(welcome)))

    def _call(self, message: Message) -> Message:
        if self._line is None:
            raise TransportError("not connected")
        return self._line.call(message)
