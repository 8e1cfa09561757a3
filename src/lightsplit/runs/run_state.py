"""Where a run stands, and the rules that a run in one process and over a network share.

progress   how far the run has come
schedule   all its turns; over a network it is known once every client has joined
patience   evaluations without a new best before the run stops
guard      judges the clients; it may undo a turn or stop the run
"""

from collections.abc import Callable

from lightsplit.errors import RunError
from lightsplit.runs.evaluation import ACCURACY, Evaluation, Monitor
from lightsplit.runs.guard import Guard, Ruling
from lightsplit.runs.progress import Progress
from lightsplit.runs.schedule import Schedule, Turn
from lightsplit.runtime import Pace, State


class RunState:
    """Counts, judges and remembers turns, and says when the run stops.

    Args:
        clients: how many take part.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        guard: judges the clients, if the run has one.
        monitor: decides which evaluation is the best.

    Attributes:
        progress: counters of the run; a checkpoint replaces them.
    """

    def __init__(
        self,
        clients: int,
        *,
        eval_every: int = 0,
        patience: int = 0,
        guard: Guard | None = None,
        monitor: Monitor = ACCURACY,
    ) -> None:
        self.progress = Progress(client_steps=[0] * clients)
        self.eval_every = eval_every
        self.patience = patience
        self.guard = guard
        self.monitor = monitor
        self._schedule: Schedule | None = None

    @property
    def schedule(self) -> Schedule:
        """All turns of the run."""
        if self._schedule is None:
            raise RunError(
                "the schedule is known when every client has said how many batches it "
                "has; wait for all of them"
            )
        return self._schedule

    @schedule.setter
    def schedule(self, schedule: Schedule) -> None:
        self._schedule = schedule

    @property
    def is_out_of_patience(self) -> bool:
        """Return whether the last evaluations brought no new best."""
        return 0 < self.patience <= self.progress.stale

    @property
    def is_stopped_by_guard(self) -> bool:
        """Return whether the guard flagged a client and ends the run for it."""
        return self.guard is not None and self.guard.is_stopping

    @property
    def stop_reason(self) -> str | None:
        """Why no further turn begins; None while the run goes on."""
        if self.is_stopped_by_guard:
            return "detector"
        if self.is_out_of_patience:
            return "patience"
        if self.progress.place >= self.schedule.total_steps:
            return "schedule"
        return None

    def is_evaluation_due(self, turn: Turn) -> bool:
        """Return whether the schedule evaluates after ``turn``, already counted."""
        return self.schedule.is_evaluated(turn, self.progress.place, self.eval_every)

    def pace(self, client: int, steps: int, *, is_counted: bool = False) -> Pace:
        """Return where the steps of a turn lie in the run.

        Args:
            client: that takes the turn.
            steps: of the turn.
            is_counted: whether the progress has them already.
        """
        counted = steps if is_counted else 0
        run_step = self.progress.place - counted
        phase, first, phase_steps = self.schedule.phase_at(run_step)
        return Pace(
            first_step=self.progress.client_steps[client] - counted,
            steps=steps,
            run_step=run_step - first,
            run_steps=phase_steps,
            phase=phase,
        )

    def begin_turn(self, client: int, capture: Callable[[], State]) -> None:
        """Let the guard prepare; ``capture`` returns the state before the turn."""
        if self.guard is not None:
            self.guard.begin(client, capture)

    def judge(
        self,
        turn: Turn,
        capture: Callable[[], State],
        put_back: Callable[[State], None],
    ) -> Ruling:
        """Let the guard judge ``turn``, which has been counted, and undo it if told to.

        Args:
            turn: the turn that has just ended.
            capture: returns the state after the turn.
            put_back: restores an earlier state.
        """
        if self.guard is None:
            return Ruling()
        steps = self.progress.place
        ruling = self.guard.end(
            turn.client,
            ends_window=self.schedule.is_evaluated(turn, steps, self.guard.every),
            capture=capture,
        )
        if ruling.verdict is not None:
            self.progress.note_verdict(turn.round + 1, ruling.verdict, ruling.others)
        if ruling.restore is not None:
            put_back(ruling.restore)
            self.progress.note_undone(turn.client)
        return ruling

    def remember(
        self, turn: Turn, evaluation: Evaluation, counts: dict[str, int]
    ) -> None:
        """Add an evaluation after ``turn`` to the history, with the bytes so far."""
        self.progress.bytes = counts
        place = (turn.epoch + 1, turn.round + 1)
        self.progress.remember(*place, evaluation, self.monitor)
