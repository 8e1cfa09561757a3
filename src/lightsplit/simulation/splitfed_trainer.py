"""SplitFed in one process: owners train alone for a round, then weights are averaged.

    v1   owner i: w0 ─► steps ─► w_i       backbone, head and tail: the mean of all w_i
    v2   one backbone, owners in an order   head and tail: the mean of all w_i
         that is drawn for every round

C. Thapa et al., "SplitFed: When Federated Learning Meets Split Learning", AAAI 2022.
Where we differ: the labels may stay with the owners (topology u), owners may be absent,
and head and tail are averaged by a sum that the server cannot read.

The copies of v1 are independent until they are averaged, so here owners work one after
the other on one side, which is reset to the beginning of the round for each of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lightsplit.protocol import Share
from lightsplit.runs.rounds import Attendance, Round, splitfed_paces
from lightsplit.runtime import (
    Client,
    CopiesMean,
    Pace,
    TurnReport,
    WeightAveraging,
    masked_sum,
)
from lightsplit.simulation.attended import AttendedTrainer


class SplitFedTrainer(AttendedTrainer):
    """Trains rounds of SplitFed; its arguments are those of AttendedTrainer and these.

    Args:
        averaging: of the side that all owners hold.
        has_copies: whether every owner has a backbone of its own in a round (v1).
    """

    def __init__(
        self,
        *arguments: Any,
        averaging: WeightAveraging,
        has_copies: bool,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._averaging = averaging
        self._has_copies = has_copies

    def _take_round(
        self, round_: Round, attendance: Attendance
    ) -> Mapping[int, TurnReport]:
        side, server = self.clients[0].side, self.server
        self._averaging.number = round_.number
        self._averaging.begin(side)
        copies = CopiesMean(server.side) if self._has_copies else None
        reports: dict[int, TurnReport] = {}
        shares: list[Share] = []
        for client, pace in self._paces(round_, attendance):
            self._averaging.begin_again(side)
            if copies is not None:
                copies.start.put_into(server.side)
            client.pace = server.pace = pace
            report = client.run_turn(self.batches[client.index], pace.steps)
            server.settle()
            reports[client.index] = report
            if copies is not None:
                copies.add(server.side, report.samples)
            if client.index in attendance.shares:
                part = self._averaging.share(side, report.samples)
                shares.append(Share(client.index, client.steps - 1, *part))
        if copies is not None:
            copies.apply()
        samples = sum(reports[share.client].samples for share in shares)
        self._average(shares, samples)
        return reports

    def _paces(
        self, round_: Round, attendance: Attendance
    ) -> Iterator[tuple[Client, Pace]]:
        """Yield each owner of a round, in order, with its steps' place in the run."""
        paces = splitfed_paces(
            round_,
            self.schedule.total_steps,
            seed=None if self._has_copies else self._seed,
        )
        for index, pace in paces.items():
            if index in attendance.gradients:
                steps = self.progress.client_steps[index]
                yield self.clients[index], pace._replace(first_step=steps)

    def _average(self, shares: list[Share], samples: int) -> None:
        """Set the side that all owners hold to the mean of their weights."""
        side = self.clients[0].side
        if not shares:
            self._averaging.begin_again(side)
            return
        totals = masked_sum.totals(shares, samples)
        for share in shares:
            self.meter.count(share, totals[share.client])
        self._averaging.apply(side, totals[shares[0].client])
