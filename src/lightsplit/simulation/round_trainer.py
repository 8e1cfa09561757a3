"""Rounds of owners who work at the same time, in one process.

codes of all ─► joined forward pass ─► output gradients ─► one update ─► code
gradients ─► with shared heads: parts of the gradient of head and tail ─► one update
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lightsplit.errors import ConfigError, LightSplitError
from lightsplit.protocol import (
    CodeMessage,
    OutputGradient,
    Reply,
    Request,
    Share,
)
from lightsplit.runs import snapshot
from lightsplit.runs.rounds import Attendance, Round
from lightsplit.runs.run_state import RunState
from lightsplit.runtime import (
    Client,
    JoiningServer,
    Pace,
    State,
    TurnReport,
    masked_sum,
)
from lightsplit.simulation.attended import AttendedTrainer
from lightsplit.simulation.gathering import Gathering
from lightsplit.simulation.shared_side import SharedSide


class RoundTrainer(AttendedTrainer):
    """Trains parallel rounds; its arguments are those of AttendedTrainer and these.

    Args:
        gathering: through which the clients send.
        shared: the side that all owners hold, if they do.
    """

    server: JoiningServer

    def __init__(
        self,
        *arguments: Any,
        gathering: Gathering,
        shared: SharedSide | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._gathering = gathering
        self._shared = shared
        for client in self.clients:
            client.averaging = shared

    def run(self) -> Iterator[Any]:
        """Train from where the progress stands, and yield after every round."""
        try:
            yield from super().run()
        finally:
            self._gathering.close()

    def _take_round(
        self, round_: Round, attendance: Attendance
    ) -> Mapping[int, TurnReport]:
        pace = round_pace(self.state, round_)
        self.server.pace = pace._replace(first_step=round_.number)
        reports = self._let_work(round_.number, pace, attendance)
        self.server.settle()
        return reports

    def _let_work(
        self, number: int, pace: Pace, attendance: Attendance
    ) -> Mapping[int, TurnReport]:
        """Let the owners of a round work; return the reports of those who stayed."""
        if self._shared is not None:
            self._shared.begin_round(number)
        kept = self._sides_to_keep(attendance)
        for index in attendance.codes:
            self.clients[index].pace = self._own(pace, index)
        reports = self._gathering.run(
            {index: self._work(self.clients[index]) for index in attendance.codes},
            lambda requests: self._answer(number, requests, attendance),
            self._shared,
        )
        for index, state in kept.items():
            self.clients[index].side.load(state)
        return reports

    def _own(self, pace: Pace, index: int) -> Pace:
        """Return the pace of a round, counted in an owner's own steps."""
        return pace._replace(first_step=self.progress.client_steps[index])

    def _sides_to_keep(self, attendance: Attendance) -> dict[int, State]:
        """Return the private sides of owners that will not hand the round in."""
        if self._shared is not None:
            return {}
        lost = set(attendance.codes) - set(attendance.done)
        return {
            index: snapshot.copied(self.clients[index].side.state()) for index in lost
        }

    def _work(self, client: Client) -> Any:
        return lambda: client.run_turn(self.batches[client.index], 1)

    def _answer(
        self, number: int, requests: list[Request], attendance: Attendance
    ) -> dict[int, Reply]:
        """Answer the owners that go on to the next stage."""
        first = requests[0]
        if isinstance(first, CodeMessage):
            codes = [one for one in requests if isinstance(one, CodeMessage)]
            outputs = self.server.forward_round(number, codes)
            return {i: r for i, r in outputs.items() if i in attendance.gradients}
        if isinstance(first, OutputGradient):
            came = [one for one in requests if isinstance(one, OutputGradient)]
            replies = self.server.backward_round(came)
            _check_all(self.server.refused)
            self.server.settle()
            return {i: r for i, r in replies.items() if self._goes_on(i, attendance)}
        shares = [one for one in requests if isinstance(one, Share)]
        samples = sum(self.server.rows[index] for index in attendance.shares)
        return {**masked_sum.totals(shares, samples)}

    def _goes_on(self, index: int, attendance: Attendance) -> bool:
        return self._shared is None or index in attendance.shares


def round_pace(state: RunState, round_: Round) -> Pace:
    """Return the position of a round's one step in the run, for every owner."""
    return Pace(0, 1, round_.place, state.schedule.total_steps)


def _check_all(refused: Mapping[int, LightSplitError]) -> None:
    """Refuse a round from which the server has left out an owner."""
    for client, error in refused.items():
        raise ConfigError(f"client {client}: {error}") from error
