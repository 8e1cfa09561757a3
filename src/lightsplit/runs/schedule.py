"""The order of turns, and how long each turn is.

The schedule depends only on how many batches each client has, so a resumed run can
enter it at any turn.

    round:  every client takes one turn, in order: the t-th turn is client t mod n's
    turn:   ``turn_steps`` consecutive batches of one client (0: all it has)
    epoch:  as many rounds as all clients together need for one pass over all data

Every round is a fair mix of all clients, whatever data they have. So is every
evaluation, because it follows a whole round. Clients with fewer batches than the mean
start their next pass within an epoch, and clients with more continue theirs in the next
epoch. With equal clients, every client uses each of its batches once per epoch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lightsplit.errors import ConfigError


@dataclass(frozen=True)
class Turn:
    """Consecutive steps of one client."""

    epoch: int
    round: int
    client: int
    steps: int
    ends_round: bool
    ends_epoch: bool


@dataclass(frozen=True)
class Schedule:
    """Sequential turns over clients.

    Attributes:
        batches: of each client per epoch.
        turn_steps: the longest turn; 0 is a client's whole epoch.
        epochs: how many passes over all data, in steps of all clients together.
        max_steps: of all clients together; 0 is no limit.
    """

    batches: Sequence[int]
    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0

    def __post_init__(self) -> None:
        if not self.batches or min(self.batches) < 1:
            raise ConfigError(f"every client needs a batch, got {list(self.batches)}")
        if min(self.turn_steps, self.max_steps) < 0 or self.epochs < 1:
            raise ConfigError(
                "turn_steps and max_steps must be 0 or more and epochs 1 or more, got "
                f"{self.turn_steps}, {self.max_steps} and {self.epochs}"
            )

    @property
    def total_steps(self) -> int:
        """Steps of all clients in all epochs."""
        steps = sum(self._steps_per_epoch) * self.epochs
        return min(steps, self.max_steps) if self.max_steps else steps

    def steps_of(self, client: int) -> int:
        """Steps of one client in all epochs."""
        if not self.max_steps:
            return self._steps_per_epoch[client] * self.epochs
        return sum(turn.steps for turn in self.turns() if turn.client == client)

    def check_reaches(self, steps: int) -> None:
        """Raise if the run has already done more steps than the schedule has."""
        if steps > self.total_steps:
            raise ConfigError(
                f"the run is at step {steps}, beyond the {self.total_steps} asked for"
            )

    def is_evaluated(self, turn: Turn, steps: int, every: int) -> bool:
        """Return whether an evaluation is due after ``turn``.

        Args:
            turn: of this schedule.
            steps: that all clients have done after the turn.
            every: rounds between evaluations; 0 is once per epoch. The last turn is
                always evaluated.
        """
        if steps >= self.total_steps:
            return True
        if not every:
            return turn.ends_epoch
        return turn.ends_round and (turn.round + 1) % every == 0

    def turns(self) -> Iterator[Turn]:
        """Yield every turn in order."""
        left = self.total_steps
        rounds = self._rounds_per_epoch
        last_client = len(self.batches) - 1
        for number in range(self.epochs * rounds):
            epoch, position = divmod(number, rounds)
            for client, steps in enumerate(self._round(position)):
                if left <= 0:
                    return
                steps_now = min(steps, left)
                ends_round = client == last_client and steps_now == steps
                ends_epoch = ends_round and position == rounds - 1
                yield Turn(epoch, number, client, steps_now, ends_round, ends_epoch)
                left -= steps_now

    @property
    def _steps_per_epoch(self) -> list[int]:
        """The steps of each client in one epoch."""
        if not self.turn_steps:
            return list(self.batches)
        clients = len(self.batches)
        return [math.ceil(sum(self.batches) / clients)] * clients

    @property
    def _rounds_per_epoch(self) -> int:
        if not self.turn_steps:
            return 1
        return math.ceil(self._steps_per_epoch[0] / self.turn_steps)

    def _round(self, position: int) -> list[int]:
        """Return the steps of every client in one round of an epoch.

        Rounds are computed one by one: a client may claim a million batches.
        """
        steps = self._steps_per_epoch
        if not self.turn_steps:
            return steps
        done = position * self.turn_steps
        return [min(self.turn_steps, count - done) for count in steps]
