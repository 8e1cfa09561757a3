"""Whose turn it is, and for how long.

The schedule is a pure function of how many batches each client has: it can be entered
at any turn, which is what a resumed run does.

    epoch:  every client uses each of its batches once
    round:  every client that still has batches in this epoch takes one turn
    turn:   ``turn_steps`` consecutive batches of one client (0: all it has)
"""

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
        epochs: how many times each client uses its data.
        max_steps: stop after so many steps in all; 0 is no limit.
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
        steps = sum(self.batches) * self.epochs
        return min(steps, self.max_steps) if self.max_steps else steps

    def steps_of(self, client: int) -> int:
        """Steps of one client in all epochs."""
        if not self.max_steps:
            return self.batches[client] * self.epochs
        return sum(turn.steps for turn in self.turns() if turn.client == client)

    def check_reaches(self, steps: int) -> None:
        """Refuse to call a run shorter than it already is."""
        if steps > self.total_steps:
            raise ConfigError(
                f"the run is at step {steps}, beyond the {self.total_steps} asked for"
            )

    def is_evaluated(self, turn: Turn, steps: int, every: int) -> bool:
        """Say whether the test set is due after ``turn``, ``steps`` being over then.

        ``every`` is in rounds; 0 is once per epoch. The end is always evaluated.
        """
        if steps >= self.total_steps:
            return True
        if not every:
            return turn.ends_epoch
        return turn.ends_round and (turn.round + 1) % every == 0

    def turns(self) -> Iterator[Turn]:
        """Yield every turn in order."""
        left = self.total_steps
        rounds = list(self._rounds())
        for number in range(self.epochs * len(rounds)):
            epoch, position = divmod(number, len(rounds))
            takers = rounds[position]
            for client, steps in takers:
                if left <= 0:
                    return
                steps_now = min(steps, left)
                ends_round = client == takers[-1][0] and steps_now == steps
                ends_epoch = ends_round and position == len(rounds) - 1
                yield Turn(epoch, number, client, steps_now, ends_round, ends_epoch)
                left -= steps_now

    def _rounds(self) -> Iterator[list[tuple[int, int]]]:
        """Yield, for each round of one epoch, who takes how many steps."""
        done = 0
        longest = self.turn_steps or max(self.batches)
        while done < max(self.batches):
            yield [
                (client, min(longest, count - done))
                for client, count in enumerate(self.batches)
                if count > done
            ]
            done += longest
