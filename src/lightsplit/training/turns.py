"""Whose turn it is in a networked run, and what a turn that is under way was told.

All replies of such a turn are kept (``replies.ReplyStore``): a client that repeats
it, because its connection broke or because it was killed, gets the same replies for
steps that were applied, and training goes on behind them. Nothing is applied twice,
nothing is lost.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, Reply, Request
from lightsplit.training.replies import ReplyStore
from lightsplit.training.schedule import Schedule, Turn


@dataclass(frozen=True)
class Order:
    """What one client is to do: a turn, or an evaluation alone (no steps)."""

    turn: Turn
    number: int
    client: int
    steps: int
    evaluate: bool


class TurnLog:
    """The replies of a turn by message and step.

    Args:
        last_kind: of the message that ends a step.

    Attributes:
        done: steps that were applied.
        samples: that they were trained on.
    """

    def __init__(self, last_kind: str) -> None:
        self._last_kind = last_kind
        self._replies = ReplyStore()
        self.done = 0
        self.samples = 0

    @property
    def is_empty(self) -> bool:
        """Say whether nothing of the turn has reached the server."""
        return not self._replies

    def clear(self) -> None:
        """Begin a new turn."""
        self._replies.clear()
        self.done = self.samples = 0

    def answer(
        self, request: Request, first_step: int, handle: Callable[[Request], Reply]
    ) -> Reply:
        """Return the reply given before, or let ``handle`` give it if it is next."""
        key = (request.kind, request.step)
        given = self._replies.get(key)
        if given is not None:
            return given
        self._check_next(request, first_step + self.done)
        reply = handle(request)
        self._replies.put(key, reply)
        if request.kind == self._last_kind:
            self.done += 1
            self.samples += _rows(request)
        return reply

    def lay_aside(self) -> None:
        """Move older replies out of the way of those to come."""
        self._replies.lay_aside()

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
    """The logs of the turns that are under way: the current one, and a late one.

    Attributes:
        current: of the current turn.
        late: the turn that is applied but not handed in yet, if there is one.
    """

    def __init__(self, last_kind: str) -> None:
        self.current, self._other = TurnLog(last_kind), TurnLog(last_kind)
        self.late: Order | None = None

    @property
    def are_empty(self) -> bool:
        """Say whether no turn is under way."""
        return self.current.is_empty and self.late is None

    def of(self, order: Order) -> TurnLog:
        """Return the log of a turn that is under way."""
        return self._other if order is self.late else self.current

    def make_late(self, order: Order) -> None:
        """Keep what the current turn was told, and begin a new one."""
        self.late = order
        self.current, self._other = self._other, self.current

    def end(self, order: Order) -> None:
        """Forget what a turn was told."""
        self.of(order).clear()
        if order is self.late:
            self.late = None

    def clear(self) -> None:
        """Forget all."""
        self.current.clear()
        self._other.clear()
        self.late = None


class OrderBook:
    """Orders in the sequence of the schedule, from any turn on."""

    def __init__(
        self, schedule: Schedule, *, turns: int, eval_every: int, has_shared_heads: bool
    ) -> None:
        self.schedule = schedule
        self._turns: Iterator[Turn] = islice(schedule.turns(), turns, None)
        self._eval_every = eval_every
        self._is_shared = has_shared_heads
        self._queue: deque[Order] = deque()

    def current(self, *, turns: int, steps: int) -> Order | None:
        """Return what is to be done now, ``turns`` and ``steps`` being over."""
        if not self._queue:
            turn = next(self._turns, None)
            if turn is not None:
                self._queue.extend(self._orders(turn, turns, steps))
        return self._queue[0] if self._queue else None

    def complete(self) -> None:
        """Strike out the current order."""
        self._queue.popleft()

    @property
    def ends_turn(self) -> bool:
        """Say whether no evaluation follows the current order."""
        return len(self._queue) == 1

    @property
    def is_at_boundary(self) -> bool:
        """Say whether a turn and its evaluations are over, and the next not begun."""
        return not self._queue or self._queue[0].steps > 0

    def _orders(self, turn: Turn, number: int, steps: int) -> Iterator[Order]:
        due = self.schedule.is_evaluated(turn, steps + turn.steps, self._eval_every)
        yield Order(turn, number, turn.client, turn.steps, due and self._is_shared)
        if due and not self._is_shared:
            for client in range(len(self.schedule.batches)):
                yield Order(turn, number, client, 0, evaluate=True)


def _rows(request: Request) -> int:
    if isinstance(request, CodeMessage):
        return request.code.values.shape[0]
    return request.gradient.shape[0]
