"""Turns and rounds over the clients.

The trainer is a generator of what happened: whoever runs it draws the progress bar,
writes the metrics and saves checkpoints between two events, or stops.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lightsplit.runtime import BatchSource, Client, Server, Side, State, TurnReport
from lightsplit.training import snapshot
from lightsplit.training.evaluation import Evaluation, LabelledBatches, evaluate
from lightsplit.training.guard import Guard, Ruling
from lightsplit.training.progress import Progress
from lightsplit.training.schedule import Schedule, Turn
from lightsplit.transports import ByteMeter


@dataclass(frozen=True)
class TurnDone:
    """A turn is over; ``evaluation`` is there when the test set was tried after it.

    ``ruling`` is the guard's, where there is one.
    """

    turn: Turn
    report: TurnReport
    evaluation: Evaluation | None
    ruling: Ruling


class Trainer:
    """Gives the clients their turns until the schedule or the patience ends.

    Args:
        clients: in the order of their turns; with shared heads they hold one side.
        server: that they all send to.
        batches: of each client.
        schedule: of turns.
        meter: through which the clients send.
        test: batches of the test set; iterated at each evaluation.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        guard: watches the clients, whose messages pass its collector.
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
    ) -> None:
        self.clients = clients
        self.server = server
        self.schedule = schedule
        self.meter = meter
        self.progress = Progress(client_steps=[0] * len(clients))
        self.batches = batches
        self._test = test
        self._eval_every = eval_every
        self._patience = patience
        self.guard = guard

    @property
    def has_shared_heads(self) -> bool:
        """Say whether the clients hold one and the same side."""
        return all(client.side is self.clients[0].side for client in self.clients)

    @property
    def is_out_of_patience(self) -> bool:
        """Say whether the last evaluations brought nothing new."""
        return 0 < self._patience <= self.progress.stale

    @property
    def is_stopped_by_guard(self) -> bool:
        """Say whether a client was flagged and the run is to end for it."""
        return self.guard is not None and self.guard.is_stopping

    @property
    def is_done(self) -> bool:
        """Say whether there is nothing left to train."""
        return (
            self.progress.steps >= self.schedule.total_steps
            or self.is_out_of_patience
            or self.is_stopped_by_guard
        )

    def run(self) -> Iterator[TurnDone]:
        """Train from where the progress stands, yielding after every turn."""
        for turn in islice(self.schedule.turns(), self.progress.turns, None):
            if self.is_done:
                return
            began = time.perf_counter()
            report = self._take(turn)
            ruling = self._rule(turn)
            evaluation = self._evaluate(turn) if self._is_due(turn) else None
            self.progress.seconds += time.perf_counter() - began
            if evaluation is not None:
                self._remember(turn, evaluation)
            self._hand_on(turn.client)
            yield TurnDone(turn, report, evaluation, ruling)

    def _take(self, turn: Turn) -> TurnReport:
        client = self.clients[turn.client]
        self._count_hand_off(turn.client)
        if self.guard is not None:
            self.guard.begin(turn.client, self._capture)
        report = client.run_turn(self.batches[turn.client], turn.steps)
        self.progress.note_turn(turn.client, report.steps, report.samples)
        self.progress.note_loss(report.loss_sum, report.samples)
        self.progress.bytes = self.meter.by_kind()
        return report

    def _rule(self, turn: Turn) -> Ruling:
        """Let the guard judge; undo the turn if it says so."""
        if self.guard is None:
            return Ruling()
        ends_window = self.schedule.is_evaluated(
            turn, self.progress.steps, self.guard.every
        )
        ruling = self.guard.end(
            turn.client, ends_window=ends_window, capture=self._capture
        )
        if ruling.verdict is not None:
            self.progress.note_verdict(turn.round + 1, ruling.verdict, ruling.others)
        if ruling.restore is not None:
            snapshot.put_back(self._sides(), ruling.restore)
            self.progress.note_undone(turn.client)
        return ruling

    def _sides(self) -> dict[str, Side]:
        """Return what the server can undo: its own side, and one that it passes on."""
        sides: dict[str, Side] = {"server": self.server.side}
        if self.has_shared_heads:
            sides["client"] = self.clients[0].side
        return sides

    def _capture(self) -> State:
        return snapshot.take(self._sides())

    def _count_hand_off(self, client: int) -> None:
        """Count the side's way to the server and on to the next client."""
        previous = self.progress.last_client
        if self.has_shared_heads and previous not in (None, client):
            taker = self.clients[client]
            self.meter.add("hand_off", 2 * taker.hand_off.size_bytes(taker.side))

    def _hand_on(self, client: int) -> None:
        """Round a shared side as its way to the next client would."""
        leaver = self.clients[client]
        travels = self.has_shared_heads and len(self.clients) > 1
        if travels and not leaver.hand_off.is_exact:
            leaver.take_over(leaver.hand_on())

    def _is_due(self, turn: Turn) -> bool:
        if self.is_stopped_by_guard:
            return True
        steps = self.progress.steps
        return self.schedule.is_evaluated(turn, steps, self._eval_every)

    def _evaluate(self, turn: Turn) -> Evaluation:
        asked = [self.clients[turn.client]] if self.has_shared_heads else self.clients
        return evaluate(asked, self._test)

    def _remember(self, turn: Turn, evaluation: Evaluation) -> None:
        self.progress.bytes = self.meter.by_kind()
        self.progress.remember(turn.epoch + 1, turn.round + 1, evaluation)
