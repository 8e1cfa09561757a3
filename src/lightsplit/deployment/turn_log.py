"""The replies of the turns under way, so that every step is applied exactly once.

A client may repeat a turn because its connection broke or because it was killed. For
steps that were applied it gets the replies it got before; training goes on with the
first step that was not. Nothing is applied twice, nothing is lost.
"""

from collections.abc import Callable, Sequence

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.reply_cache import ReplyCache
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Recall,
    Release,
    Reply,
    Request,
)


class TurnLog:
    """The replies of one turn, by message and step.

    Attributes:
        done: how many steps were applied.
        samples: how many samples these steps had.
    """

    def __init__(self) -> None:
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
        self,
        request: Request,
        kinds: Sequence[str],
        first_step: int,
        handle: Callable[[Request], Reply],
    ) -> Reply:
        """Return the earlier reply; if there is none, let ``handle`` answer.

        Args:
            request: of the client.
            kinds: of the messages that a step of this turn has, in order.
            first_step: of the turn.
            handle: answers a request.
        """
        key = (request.kind, request.step)
        given = self._replies.get(key)
        if given is not None:
            return given
        self._check_next(request, kinds, first_step + self.done)
        reply = handle(request)
        self._replies.put(key, reply)
        if request.kind == kinds[-1]:
            self.done += 1
            self.samples += _rows(request, reply)
        return reply

    def forget_open_step(self, first_step: int) -> None:
        """Drop the reply to a code whose gradient never came."""
        for kind in (CodeMessage.kind, Recall.kind):
            self._replies.drop((kind, first_step + self.done))

    def _check_next(self, request: Request, kinds: Sequence[str], step: int) -> None:
        missing = [kind for kind in kinds if (kind, step) not in self._replies]
        if (request.kind, request.step) != (missing[0] if missing else "", step):
            expected = missing[0] if missing else "nothing"
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

    def __init__(self) -> None:
        self.current, self._other = TurnLog(), TurnLog()
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
    if isinstance(request, Release):
        return 0
    if isinstance(request, CodeMessage) and request.labels is not None:
        return request.labels.shape[0]
    return reply.output.values.shape[0] if isinstance(reply, OutputMessage) else 0
