"""The order of turns, and how long each turn is.

The schedule depends only on how many batches each client has, so a resumed run can
enter it at any turn.

    phases: where codes are sent once, epochs of local training, then one round in which
            every client releases its codes, come before the epochs with the server
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
from lightsplit.protocol.phases import LOCAL, RELEASE, TRAIN


@dataclass(frozen=True)
class Turn:
    """Consecutive steps of one client; epochs and rounds count within a phase."""

    epoch: int
    round: int
    client: int
    steps: int
    ends_round: bool
    ends_epoch: bool
    phase: str = TRAIN

    @property
    def trains_server(self) -> bool:
        """Return whether the server takes part in the steps."""
        return self.phase == TRAIN

    @property
    def ends_early_epoch(self) -> bool:
        """Return whether an epoch ends before the server takes part.

        Nothing is evaluated there, and still it is a good moment for a checkpoint.
        """
        return self.ends_epoch and not self.trains_server


@dataclass(frozen=True)
class Schedule:
    """Sequential turns over clients.

    Attributes:
        batches: of each client per epoch.
        turn_steps: the longest turn; 0 is a client's whole epoch.
        epochs: how many passes over all data, in steps of all clients together.
        max_steps: of all clients together in these epochs; 0 is no limit.
        local_epochs: of local training before codes are released; 0 where codes are
            sent in every step.
        whole_rounds: whether ``max_steps`` never cuts a round short: the run then ends
            with the last whole round before it, and has one at least.
    """

    batches: Sequence[int]
    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0
    local_epochs: int = 0
    whole_rounds: bool = False

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
        """Steps of all clients in all phases."""
        return sum(self._phase_steps.values())

    def phase_at(self, step: int) -> tuple[str, int, int]:
        """Return the phase of a step of all clients, its first step and its length."""
        first = 0
        for phase, steps in self._phase_steps.items():
            if step < first + steps or phase == TRAIN:
                break
            first += steps
        return phase, first, steps

    def steps_of(self, client: int) -> int:
        """Steps of one client in all phases."""
        if not self.max_steps:
            epochs = self.local_epochs + self.epochs
            released = self.batches[client] if self.local_epochs else 0
            return self._steps_per_epoch[client] * epochs + released
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
                always evaluated, and nothing before the server takes part.
        """
        if not turn.trains_server:
            return False
        if steps >= self.total_steps:
            return True
        if not every:
            return turn.ends_epoch
        return turn.ends_round and (turn.round + 1) % every == 0

    def turns(self) -> Iterator[Turn]:
        """Yield every turn in order."""
        steps = self._phase_steps
        if self.local_epochs:
            yield from self._epochs(LOCAL, self.local_epochs, steps[LOCAL])
            last = len(self.batches) - 1
            for client, count in enumerate(self.batches):
                is_last = client == last
                yield Turn(0, 0, client, count, is_last, is_last, RELEASE)
        yield from self._epochs(TRAIN, self.epochs, steps[TRAIN])

    def _epochs(self, phase: str, epochs: int, left: int) -> Iterator[Turn]:
        rounds = self.rounds_per_epoch
        last_client = len(self.batches) - 1
        for number in range(epochs * rounds):
            epoch, position = divmod(number, rounds)
            for client, steps in enumerate(self.round_steps(position)):
                if left <= 0:
                    return
                steps_now = min(steps, left)
                ends_round = client == last_client and steps_now == steps
                ends_epoch = ends_round and position == rounds - 1
                ends = (ends_round, ends_epoch)
                yield Turn(epoch, number, client, steps_now, *ends, phase)
                left -= steps_now

    @property
    def _phase_steps(self) -> dict[str, int]:
        """The steps of all clients in each phase, in order."""
        epoch = sum(self._steps_per_epoch)
        steps = epoch * self.epochs
        train = {TRAIN: min(steps, self._most_steps) if self.max_steps else steps}
        if not self.local_epochs:
            return train
        return {LOCAL: epoch * self.local_epochs, RELEASE: sum(self.batches)} | train

    @property
    def _most_steps(self) -> int:
        """The limit of steps, if need be down to the end of a round."""
        if not self.whole_rounds:
            return self.max_steps
        first = sum(self.round_steps(0))
        epochs, left = divmod(self.max_steps, sum(self._steps_per_epoch))
        return max(epochs * sum(self._steps_per_epoch) + left // first * first, first)

    def place_of(self, number: int) -> int:
        """Return the steps of all clients before round ``number`` of the epochs."""
        epoch, position = divmod(number, self.rounds_per_epoch)
        clients, turn = len(self.batches), self.turn_steps
        return epoch * sum(self._steps_per_epoch) + position * clients * turn

    @property
    def _steps_per_epoch(self) -> list[int]:
        """The steps of each client in one epoch."""
        if not self.turn_steps:
            return list(self.batches)
        clients = len(self.batches)
        return [math.ceil(sum(self.batches) / clients)] * clients

    @property
    def rounds_per_epoch(self) -> int:
        """Rounds that all clients together need for one pass over all data."""
        if not self.turn_steps:
            return 1
        return math.ceil(self._steps_per_epoch[0] / self.turn_steps)

    def round_steps(self, position: int) -> list[int]:
        """Return the steps of every client in one round of an epoch.

        Rounds are computed one by one: a client may claim a million batches.
        """
        steps = self._steps_per_epoch
        if not self.turn_steps:
            return steps
        done = position * self.turn_steps
        return [min(self.turn_steps, count - done) for count in steps]
