"""Which client does what next in a networked run."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lightsplit.runs.schedule import Schedule, Turn


@dataclass(frozen=True)
class Assignment:
    """The work of one client: a turn, or an evaluation alone.

    Attributes:
        turn: of the schedule.
        number: of the turn in the run; turns that were undone do not count.
        client: that does the work.
        steps: of training; 0 is an evaluation alone.
        evaluate: whether the client evaluates after the last step.
    """

    turn: Turn
    number: int
    client: int
    steps: int
    evaluate: bool


class AssignmentQueue:
    """Assignments in the order of a schedule, starting at any turn.

    Args:
        schedule: of the run.
        turns: how many turns are over.
        eval_every: rounds between evaluations; 0 means once per epoch.
        every_client_evaluates: whether every client evaluates after the turn, as with
            private heads; otherwise the client of the turn evaluates for all.
    """

    def __init__(
        self,
        schedule: Schedule,
        *,
        turns: int,
        eval_every: int,
        every_client_evaluates: bool,
    ) -> None:
        self._schedule = schedule
        self._turns: Iterator[Turn] = islice(schedule.turns(), turns, None)
        self._eval_every = eval_every
        self._every_client_evaluates = every_client_evaluates
        self._queue: deque[Assignment] = deque()

    def current(self, *, number: int, steps: int) -> Assignment | None:
        """Return the assignment to do now; None if the schedule is over.

        Args:
            number: of the next turn.
            steps: that all clients have done.
        """
        if not self._queue:
            turn = next(self._turns, None)
            if turn is not None:
                self._queue.extend(self._assignments(turn, number, steps))
        return self._queue[0] if self._queue else None

    def complete(self) -> None:
        """Remove the current assignment."""
        self._queue.popleft()

    @property
    def ends_turn(self) -> bool:
        """Return whether no evaluation follows the current assignment."""
        return len(self._queue) == 1

    @property
    def is_at_boundary(self) -> bool:
        """Return whether a turn and its evaluations are over and no other has begun."""
        return not self._queue or self._queue[0].steps > 0

    def _assignments(self, turn: Turn, number: int, steps: int) -> Iterator[Assignment]:
        is_due = self._schedule.is_evaluated(turn, steps + turn.steps, self._eval_every)
        by_all = self._every_client_evaluates
        yield Assignment(turn, number, turn.client, turn.steps, is_due and not by_all)
        if is_due and by_all:
            for client in range(len(self._schedule.batches)):
                yield Assignment(turn, number, client, 0, evaluate=True)
