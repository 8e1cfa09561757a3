"""Turns and rounds over the clients, in one process.

The trainer yields an event after every turn. Its caller draws the progress bar, writes
the metrics and saves checkpoints between two events, or stops.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lightsplit.runs import snapshot
from lightsplit.runs.evaluation import (
    BY_ACCURACY,
    Evaluation,
    LabelledBatches,
    Scoring,
    evaluate,
)
from lightsplit.runs.guard import Guard, Ruling
from lightsplit.runs.progress import Progress
from lightsplit.runs.run_state import RunState
from lightsplit.runs.schedule import Schedule, Turn
from lightsplit.runtime import BatchSource, Client, Server, Side, State, TurnReport
from lightsplit.transports import ByteMeter


@dataclass(frozen=True)
class TurnEnded:
    """The event after every turn.

    Attributes:
        turn: as the schedule has it.
        report: steps, samples and loss of the turn.
        evaluation: on the test set, if one was due after the turn.
        ruling: of the guard; empty without a guard.
    """

    turn: Turn
    report: TurnReport
    evaluation: Evaluation | None
    ruling: Ruling


class Trainer:
    """Gives the clients their turns until schedule, patience or guard ends the run.

    Args:
        clients: in the order of their turns; with shared heads they hold one side.
        server: that they all send to.
        batches: of each client.
        schedule: of turns.
        meter: through which the clients send.
        test: batches of the test set; iterated at each evaluation.
        eval_every: rounds between evaluations; 0 means once per epoch.
        patience: evaluations without a new best before stopping; 0 means never.
        guard: judges the clients, whose messages pass its collector.
        scoring: of the test set.
        every_client_evaluates: whether every client evaluates a shared side after a
            hand-off, as over a network where each has its own test set; otherwise the
            client of the last turn evaluates for all. With private heads every client
            always evaluates.

    Attributes:
        state: where the run stands.
    """

    def __init__(  # noqa: PLR0913
        self,
        clients: Sequence[Client],
        server: Server,
        *,
        batches: Sequence[BatchSource],
        schedule: Schedule,
        meter: ByteMeter,
        test: LabelledBatches,
        eval_every: int = 0,
        patience: int = 0,
        guard: Guard | None = None,
        scoring: Scoring = BY_ACCURACY,
        every_client_evaluates: bool = False,
    ) -> None:
        self.clients = clients
        self.server = server
        self.meter = meter
        self.batches = batches
        self._test = test
        self.scoring = scoring
        self._every_client_evaluates = every_client_evaluates
        self.state = RunState(
            len(clients),
            eval_every=eval_every,
            patience=patience,
            guard=guard,
            monitor=scoring.monitor,
        )
        self.state.schedule = schedule

    @property
    def progress(self) -> Progress:
        """How far the run has come."""
        return self.state.progress

    @property
    def schedule(self) -> Schedule:
        """All turns of the run."""
        return self.state.schedule

    @property
    def guard(self) -> Guard | None:
        """The guard that judges the clients, if the run has one."""
        return self.state.guard

    @property
    def has_shared_heads(self) -> bool:
        """Return whether the clients hold one and the same side."""
        return all(client.side is self.clients[0].side for client in self.clients)

    @property
    def side_travels(self) -> bool:
        """Return whether a side would go from client to client over a network."""
        return self.has_shared_heads and len(self.clients) > 1

    @property
    def _hands_on_first(self) -> bool:
        """Return whether a turn's side is handed on before all clients evaluate it."""
        return self.side_travels and self._every_client_evaluates

    @property
    def is_done(self) -> bool:
        """Return whether no further turn begins."""
        return self.state.stop_reason is not None

    def run(self) -> Iterator[TurnEnded]:
        """Train from where the progress stands, and yield after every turn."""
        for turn in self._due():
            if self.is_done:
                return
            began = time.perf_counter()
            report = self._take(turn)
            ruling = self.state.judge(turn, self._capture, self._put_back)
            if self._hands_on_first:
                self._hand_on(turn.client)
            evaluation = self._evaluate(turn) if self._is_due(turn) else None
            self.progress.seconds += time.perf_counter() - began
            if evaluation is not None:
                self.state.remember(turn, evaluation, self.meter.by_kind())
            if not self._hands_on_first:
                self._hand_on(turn.client)
            yield TurnEnded(turn, report, evaluation, ruling)

    def _due(self) -> Iterator[Turn]:
        """Yield the turns that are not over."""
        return islice(self.schedule.turns(), self.progress.turns, None)

    def _take(self, turn: Turn) -> TurnReport:
        client = self.clients[turn.client]
        self._count_hand_off(turn.client)
        if self.side_travels:
            client.take_seat()
        self.state.begin_turn(turn.client, self._capture)
        client.pace = self.server.pace = self.state.pace(turn.client, turn.steps)
        report = client.run_turn(self.batches[turn.client], turn.steps)
        samples = report.samples if turn.trains_server else 0
        self.progress.note_turn(turn.client, report.steps, samples)
        if turn.trains_server:
            self.progress.note_loss(report.loss_sum, report.samples)
        self.progress.note_objectives(report.objective_sums, report.objective_samples)
        self.progress.bytes = self.meter.by_kind()
        return report

    def _sides(self) -> dict[str, Side]:
        """Return the sides that the server can undo: its own, and a shared one."""
        sides: dict[str, Side] = {"server": self.server.side}
        if self.has_shared_heads:
            sides["client"] = self.clients[0].side
        return sides

    def _capture(self) -> State:
        return snapshot.take(self._sides())

    def _put_back(self, state: State) -> None:
        snapshot.put_back(self._sides(), state)

    def _count_hand_off(self, client: int) -> None:
        """Count the bytes of the side to the server and on to the next client."""
        previous = self.progress.last_client
        if self.side_travels and previous not in (None, client):
            taker = self.clients[client]
            phase, _, _ = self.schedule.phase_at(self.progress.steps - 1)
            size = taker.hand_off.size_bytes(taker.side, phase)
            self.meter.add("hand_off", 2 * size)

    def _hand_on(self, client: int) -> None:
        """Change a shared side as a hand-off to the next client would."""
        leaver = self.clients[client]
        if self.side_travels and not leaver.hand_off.is_whole:
            leaver.take_over(leaver.hand_on())

    def _is_due(self, turn: Turn) -> bool:
        """Return whether to evaluate: on schedule, and again if the guard stops."""
        return self.state.is_stopped_by_guard or self.state.is_evaluation_due(turn)

    def _evaluate(self, turn: Turn) -> Evaluation:
        asked = self._asked(turn)
        if self._hands_on_first:
            each = asked[0].hand_off.size_bytes(asked[0].side)
            self.meter.add("hand_off", len(asked) * each)
        return evaluate(asked, self._test, self.scoring)

    def _asked(self, turn: Turn) -> Sequence[Client]:
        """Return the clients that evaluate; with shared heads one may do it for all."""
        if self.has_shared_heads and not self._hands_on_first:
            return [self.clients[turn.client]]
        return self.clients
