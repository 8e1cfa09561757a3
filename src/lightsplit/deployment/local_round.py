"""One round of SplitFed as the server sees it: steps of each owner, then all together.

    steps, answered one by one ─► shares of head and tail ─► hand-in

Owners of v1 make their steps at the same time, owners of v2 in the order of the round.
An owner is late when it has been silent for too long, however long its steps take; in
v2 only the owner whose place has come can be late. A late owner leaves no trace in the
round. An owner may come back and repeat its messages, but not endlessly.
"""

from collections import Counter
from collections.abc import Sequence

from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.turn_budget import SPARE_MOVES
from lightsplit.deployment.turn_log import TurnLog
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Share
from lightsplit.runs.rounds import Attendance, Round

_KINDS = 2  # of messages in a step: a code, an output gradient


class LocalRound(OpenRound):
    """The steps and messages of one round.

    Args:
        round_: of the schedule.
        invited: owners that are present when it begins.
        now: the time.
        order: all owners, if they work one after the other (v2); otherwise empty.

    Attributes:
        current: the owner whose place in the order has come; None if there is no order,
            or if all have finished.
        finished: owners whose steps are in the backbone, once that has been decided.
    """

    def __init__(
        self, round_: Round, invited: set[int], now: float, order: Sequence[int] = ()
    ) -> None:
        super().__init__(round_, (Share.kind,), invited, now)
        self._order = list(order)
        self._logs: dict[int, TurnLog] = {}
        self._spoke: dict[int, float] = {}
        self._messages: Counter[int] = Counter()
        self._last = self._began = now
        self.current: int | None = None
        self.finished: tuple[int, ...] = ()

    def log(self, client: int) -> TurnLog:
        """Return the replies of an owner's steps."""
        return self._logs.setdefault(client, TurnLog())

    def done_steps(self, client: int) -> int:
        """Return how many steps of an owner the backbone, or its copy, holds."""
        return self.log(client).done

    def has_finished(self, client: int) -> bool:
        """Return whether an owner has made all its steps."""
        return self.done_steps(client) == self.round.steps_of[client]

    def may_step(self, client: int) -> bool:
        """Return whether an owner may make its next step now."""
        return not self._order or client == self.current

    def find_current(self, now: float) -> int | None:
        """Return the owner whose place in the order has come, if there is an order."""
        left = [one for one in self._order if one in self.expected]
        found = next((one for one in left if not self.has_finished(one)), None)
        if found != self.current:
            self.current, self._began = found, now
        return found

    def note(self, client: int, now: float) -> None:
        """Remember that an owner has sent a message, unless it repeats too many."""
        self._messages[client] += 1
        of_a_round = _KINDS * self.round.steps_of[client] + 1
        if self._messages[client] <= of_a_round * (1 + SPARE_MOVES):
            self._spoke[client] = self._last = now

    def invite(self, client: int) -> None:
        """Let in an owner that arrives later, unless its place has passed."""
        if not self._order or self._is_ahead(client):
            super().invite(client)

    def _is_ahead(self, client: int) -> bool:
        """Return whether the place of an owner in the order is still to come."""
        if self.current is None:
            return not self._logs  # nobody has begun; else all have finished
        return self._order.index(client) > self._order.index(self.current)

    def late(self, now: float, patience: float) -> int | None:
        """Return the late owner that holds up those after it in the order, if any."""
        current = self.find_current(now)
        is_late = now - max(self._began, self._spoke.get(current or 0, 0)) >= patience
        return current if current is not None and is_late else None

    def pass_over(self, client: int) -> None:
        """Remove an owner that has been silent for too long from the round."""
        text = f"round {self.round.number} went on without this owner, who was too late"
        self.refuse(client, ProtocolError(text, code="stale-turn"))
        self._logs.pop(client, None)

    def waited(self, now: float) -> float:
        """Return how long no owner has sent anything, in seconds."""
        return min(super().waited(now), now - self._last)

    def is_complete(self, now: float, least: int, patience: float) -> bool:
        """Return whether the stage is over; during steps, silence counts, not the time.

        Args:
            now: the time.
            least: how many owners are enough when the others are silent.
            patience: how long an owner may be silent, in seconds.
        """
        if self._came or not self.missing:
            return super().is_complete(now, least, patience)
        if self.current is not None or len(self.heard) < max(least, 1):
            return False
        return all(
            now - max(self._opened, self._spoke.get(one, 0)) >= patience
            for one in self.missing
        )

    def decide(self) -> None:
        """Decide whose steps count: only owners that have made all of theirs."""
        self.finished = tuple(one for one in sorted(self._logs) if self._counts(one))
        self.rows = {one: self.log(one).samples for one in self.finished}

    def _counts(self, client: int) -> bool:
        return self.has_finished(client) and client not in self._refusals

    @property
    def attendance(self) -> Attendance:
        """Which owners reached each stage; an owner's steps count together or not."""
        return Attendance(self.finished, self.finished, self._came[0], self.done)
