"""Rounds in one process: which owners take part, and which steps count.

``participation`` says which owners take part and how far each of them gets; without it
all owners, or those drawn for the round, stay to the end. So one process can repeat a
networked run.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lightsplit.runs.rounds import Attendance, Round, drawn_owners, rounds
from lightsplit.runs.schedule import Turn
from lightsplit.runtime import Client, TurnReport
from lightsplit.simulation.trainer import Trainer


class AttendedTrainer(Trainer):
    """Trains round by round; its arguments are those of Trainer and these.

    Args:
        participation: who takes part in each round; if empty, everybody who is drawn.
        seed: of the run.
        owners_per_round: how many are drawn for a round; 0 means all.
    """

    def __init__(
        self,
        *arguments: Any,
        participation: Sequence[Attendance] = (),
        seed: int = 0,
        owners_per_round: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._participation = participation
        self._seed = seed
        self._owners_per_round = owners_per_round
        self._round: Round | None = None
        self._present: list[int] = []

    @property
    def side_travels(self) -> bool:
        """Return whether a side goes from client to client; none does in rounds."""
        return False

    @property
    def is_done(self) -> bool:
        """Return whether no further round begins."""
        return super().is_done or self._has_ended

    @abstractmethod
    def _take_round(
        self, round_: Round, attendance: Attendance
    ) -> Mapping[int, TurnReport]:
        """Train one round; return the reports of the owners that hand it in."""

    @property
    def _next_round(self) -> int:
        return self.progress.turns // len(self.clients)

    def _due(self) -> Iterator[Turn]:
        for round_ in rounds(self.schedule, self._next_round):
            self._round = round_
            yield round_.turn

    def _is_due(self, turn: Turn) -> bool:
        """Decide as for turns; the run also ends where the participation file ends."""
        return super()._is_due(turn) or self._has_ended

    @property
    def _has_ended(self) -> bool:
        told = len(self._participation)
        return 0 < told <= self._next_round

    def _take(self, _turn: Turn) -> TurnReport:
        round_, attendance = self._round, self._attendance()
        assert round_ is not None  # noqa: S101  a round is due
        reports = self._take_round(round_, attendance)
        self._present = list(attendance.done)
        for index in set(attendance.codes) - set(attendance.done):
            self.clients[index].steps = self.progress.client_steps[index]
        whole = TurnReport()
        for index in attendance.done:
            whole = whole.plus(reports[index])
        self.progress.note_round(round_.steps_of, attendance.done, whole.samples)
        self.progress.note_loss(whole.loss_sum, whole.samples)
        self.progress.note_objectives(whole.objective_sums, whole.objective_samples)
        self.progress.bytes = self.meter.by_kind()
        return whole

    def _attendance(self) -> Attendance:
        number = self._next_round
        if self._participation:
            return self._participation[number]
        able, most = set(range(len(self.clients))), self._owners_per_round
        drawn = drawn_owners(able, most, seed=self._seed, number=number)
        return Attendance.full(list(drawn))

    def _hand_on(self, client: int) -> None:
        """Do nothing: no side travels."""

    def _asked(self, _turn: Turn) -> Sequence[Client]:
        """Return the clients that evaluate; the last of a round may do it for all."""
        present = [self.clients[index] for index in self._present]
        is_one = self.has_shared_heads and not self._every_client_evaluates
        return present[-1:] if is_one else present
