"""The replies of the turns under way, so that every step is applied exactly once.

A client may repeat a turn because its connection broke or because it was killed. For
steps that were applied it gets the replies it got before; training goes on with the
first step that was not. Nothing is applied twice, nothing is lost.
"""

from collections.abc import Callable

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.reply_cache import ReplyCache
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
)


class TurnLog:
    """The replies of one turn, by message and step.

    Args:
        last_kind: kind of the message that completes a step.

    Attributes:
        done: how many steps were applied.
        samples: how many samples these steps had.
    """

    def __init__(self, last_kind: str) -> None:
        self._last_kind = last_kind
        self._replies = ReplyCache()
        self.done = 0
        self.samples = 0

    @property
    def is_empty(self) -> bool:
        """Return whether the server has answered nothing in this turn."""
        return not self._replies

    def clear(self) -> None:
        """Forget the turn and get ready for another one."""
        self._replies.clear()
        self.done = self.samples = 0

    def answer(
        self, request: Request, first_step: int, handle: Callable[[Request], Reply]
    ) -> Reply:
        """Return the earlier reply; if there is none, let ``handle`` answer."""
        key = (request.kind, request.step)
        given = self._replies.get(key)
        if given is not None:
            return given
        self._check_next(request, first_step + self.done)
        reply = handle(request)
        self._replies.put(key, reply)
        if request.kind == self._last_kind:
            self.done += 1
            self.samples += _rows(request, reply)
        return reply

    def forget_open_step(self, first_step: int) -> None:
        """Drop the reply to a code whose gradient never came."""
        self._replies.drop((CodeMessage.kind, first_step + self.done))

    def _check_next(self, request: Request, step: int) -> None:
        is_code = isinstance(request, CodeMessage)
        has_code = (CodeMessage.kind, step) in self._replies
        if request.step != step or is_code == has_code:
            expected = self._last_kind if has_code else CodeMessage.kind
            raise ProtocolError(
                f"expected {expected} of step {step}, "
                f"got {request.kind} of step {request.step}",
                code="out-of-order",
            )


class TurnLogs:
    """The logs of the turns under way: the current one, and perhaps a late one.

    Attributes:
        current: log of the current turn.
        late: the turn that is applied but not yet handed in, if there is one.
    """

    def __init__(self, last_kind: str) -> None:
        self.current, self._other = TurnLog(last_kind), TurnLog(last_kind)
        self.late: Assignment | None = None

    @property
    def are_empty(self) -> bool:
        """Return whether no turn is under way."""
        return self.current.is_empty and self.late is None

    def of(self, assignment: Assignment) -> TurnLog:
        """Return the log of a turn under way."""
        return self._other if assignment is self.late else self.current

    def make_late(self, assignment: Assignment) -> None:
        """Keep the log of the current turn aside, and begin a new one."""
        self.late = assignment
        self.current, self._other = self._other, self.current

    def end(self, assignment: Assignment) -> None:
        """Forget a turn that was handed in."""
        self.of(assignment).clear()
        if assignment is self.late:
            self.late = None

    def clear(self) -> None:
        """Forget all."""
        self.current.clear()
        self._other.clear()
        self.late = None


def _rows(request: Request, reply: Reply) -> int:
    """Return the samples of a step, given its last message."""
    if isinstance(request, OutputGradient):
        return request.gradient.shape[0]
    if request.labels is not None:
        return request.labels.shape[0]
    return reply.output.values.shape[0] if isinstance(reply, OutputMessage) else 0
