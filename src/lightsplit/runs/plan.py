"""How long a networked run takes, and when it evaluates and saves."""

from collections.abc import Sequence
from dataclasses import dataclass

from lightsplit.runs.evaluation import ACCURACY, Monitor
from lightsplit.runs.schedule import Schedule


@dataclass(frozen=True)
class RunPlan:
    """The server's settings for the course of a run.

    Attributes:
        turn_steps, epochs, max_steps, local_epochs, whole_rounds: as of Schedule.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        monitor: the test figure that decides which evaluation is the best.
        checkpoint_every: steps between checkpoints; 0 is at each evaluation.
        step_timeout_seconds: the server cuts off a client that keeps it waiting for
            longer and undoes the client's open step; the client may come back. After
            the last turn the server stays this long for clients that have not yet
            acknowledged the end.
        turn_timeout_seconds: the longest that the run waits for one turn, whatever its
            client does; then the run ends. None is one step timeout per step of the
            turn and ten more. A round has the time of a turn, a round of SplitFed that
            of all its turns.
        min_clients: owners that are enough for a round; None is all of them.
        owners_per_round: the most owners of a round, drawn anew for each; 0 is
            all who are there.
        round_timeout_seconds: how long a round waits at each stage for those who are
            late, if enough are there.
        every_client_evaluates: with shared heads, whether each client measures the
            model on its own test set, or the client of the last turn for all.
    """

    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0
    eval_every: int = 0
    patience: int = 0
    monitor: Monitor = ACCURACY
    checkpoint_every: int = 0
    step_timeout_seconds: float = 60.0
    turn_timeout_seconds: float | None = None
    local_epochs: int = 0
    min_clients: int | None = None
    owners_per_round: int = 0
    round_timeout_seconds: float = 30.0
    every_client_evaluates: bool = False
    whole_rounds: bool = False

    def schedule(self, batches: Sequence[int]) -> Schedule:
        """Return all turns of clients that have so many batches per epoch."""
        return Schedule(
            batches,
            self.turn_steps,
            self.epochs,
            self.max_steps,
            self.local_epochs,
            self.whole_rounds,
        )
