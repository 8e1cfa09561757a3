"""A client's connection to the server, which is opened again whenever it breaks.

exchange ─► call ─► reply
             └─► broken ─► reach ─► the same turn ─► the step again, from its code
                              └─► another turn ─► TurnLostError

If a restarted server begins a round again, it may have other owners. Then a repeated
code gets a different output, and a gradient of the old output would be wrong: such a
round counts as a different one.
"""

from collections.abc import Callable
from typing import Protocol

import torch

from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.pauses import Pauses
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.protocol import (
    CodeMessage,
    Message,
    OutputGradient,
    OutputMessage,
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
        in_rounds: whether outputs depend on who else takes part.
    """

    def __init__(
        self,
        connect: Callable[[], Line],
        hello: Hello,
        take_place: Callable[[Welcome], int],
        options: JoinOptions,
        *,
        in_rounds: bool = False,
    ) -> None:
        self._connect = connect
        self._hello = hello
        self._take_place = take_place
        self._options = options
        self._pauses = Pauses(options.give_up_seconds)
        self._line: Line | None = None
        self._in_rounds = in_rounds
        self._code: CodeMessage | Recall | None = None
        self._output: Message | None = None  # for this code

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
            self._code, self._output = request, None
        again: Instruction | None = None
        while True:
            try:
                if again is not None and isinstance(request, OutputGradient):
                    self._repeat_code(again)
                reply = self._call(request)
                self._pauses.restart()
                if request is self._code:
                    self._output = reply
                return reply  # type: ignore[return-value]
            except TransportError as error:
                if self._pauses.is_time_up:
                    raise
                self._options.away(error)
                again = self.reach()
                if not is_same_turn(again):
                    raise TurnLostError(again) from None

    def finish(self) -> None:
        """Acknowledge the end of the run."""
        if self._line is not None:
            self._line.finish(Heard())

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._line is not None:
            self._line.close()

    def _repeat_code(self, instruction: Instruction) -> None:
        """Send the code of a step again, before its gradient.

        The server undid the open step when the connection broke.
        """
        if self._code is None:
            return
        output = self._call(self._code)
        if self._in_rounds and not _is_same(output, self._output):
            raise TurnLostError(instruction)

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


def _is_same(one: Message | None, other: Message | None) -> bool:
    """Return whether two outputs have the same bits."""
    if not isinstance(one, OutputMessage) or not isinstance(other, OutputMessage):
        return one == other
    mine, theirs = ((m.output.values, *m.output.side) for m in (one, other))
    return all(map(torch.equal, mine, theirs))
