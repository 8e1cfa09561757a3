"""Parallel rounds in which worker processes compute the owners.

The main process keeps the whole state of the run: the server, the sides, the counters.
So checkpoints, evaluation and records are those of one process.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lightsplit.protocol import Reply, Request, Total
from lightsplit.results import tensors
from lightsplit.runs.rounds import Attendance
from lightsplit.runtime import Pace, TurnReport
from lightsplit.runtime.optimizer_state import is_optimizer_state
from lightsplit.simulation.crew import Crew
from lightsplit.simulation.round_trainer import RoundTrainer
from lightsplit.simulation.round_worker import Ended, Order, buffers_from_bytes


class CrewedTrainer(RoundTrainer):
    """Trains parallel rounds; its arguments are those of RoundTrainer and one more.

    Args:
        crew: computes the owners' halves.
    """

    def __init__(self, *arguments: Any, crew: Crew, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._crew = crew

    def run(self) -> Iterator[Any]:
        """Train from where the progress stands, and yield after every round."""
        try:
            yield from super().run()
        finally:
            self._crew.close()

    def _let_work(
        self, number: int, pace: Pace, attendance: Attendance
    ) -> Mapping[int, TurnReport]:
        totals: list[Total] = []

        def answer(requests: list[Request]) -> Mapping[int, Reply]:
            replies = self._answer(number, requests, attendance)
            totals.extend(one for one in replies.values() if isinstance(one, Total))
            return replies

        ended = self._crew.run(self._orders(number, pace, attendance.codes), answer)
        for one in ended:
            self.meter.counts.update(one.counts)
        if totals:
            self._update(number, pace, totals[0], ended)
        sides = {index: side for one in ended for index, side in one.sides.items()}
        for index in attendance.done:
            self.clients[index].steps += 1
            if index in sides:
                self.clients[index].side.load(tensors.from_bytes(sides[index]))
        return {index: report for one in ended for index, report in one.reports.items()}

    def _orders(
        self, number: int, pace: Pace, owners: Sequence[int]
    ) -> Sequence[Order]:
        """Return an order for each worker that is needed, owners in their order."""
        shared = b"" if self._shared is None else self._weights()
        workers = min(self._crew.count, len(owners))
        cuts = [len(owners) * place // workers for place in range(workers + 1)]
        return [
            Order(
                number,
                {index: self._own(pace, index) for index in owners[start:stop]},
                {} if shared else {one: self._side(one) for one in owners[start:stop]},
                shared,
            )
            for start, stop in itertools.pairwise(cuts)
        ]

    def _weights(self) -> bytes:
        """Return the side that all owners hold, without its optimizer's state."""
        state = self.clients[0].side.state()
        return tensors.to_bytes(
            {name: one for name, one in state.items() if not is_optimizer_state(name)}
        )

    def _side(self, index: int) -> bytes:
        return tensors.to_bytes(self.clients[index].side.state())

    def _update(
        self, number: int, pace: Pace, total: Total, ended: Sequence[Ended]
    ) -> None:
        """Make the update of the side that all owners hold."""
        assert self._shared is not None  # noqa: S101  its owners sent shares
        buffers = next(one.buffers for one in ended if one.buffers)
        self._shared.begin_round(number)
        self._shared.take(buffers_from_bytes(buffers), total)
        first = self.clients[0]
        first.recipe.apply(first.side, pace, pace.first_step)
