"""The server's work in a round of SplitFed: owners' steps, and the mean of its copies.

v1   a copy of the backbone for every owner that has made a step, until the round is
     over; the run's own backbone stays where it was, for predictions
v2   one backbone; what an owner changed is undone if it leaves before its last step
"""

from lightsplit.deployment.local_round import LocalRound
from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.round_steps import added
from lightsplit.deployment.turn_steps import computed
from lightsplit.protocol import Contract, Reply, Request
from lightsplit.protocol.phases import TRAIN, step_kinds
from lightsplit.runs import snapshot
from lightsplit.runtime import CopiesMean, Pace, Server, State


class LocalSteps:
    """Lets the server answer the steps of each owner.

    Args:
        server: the same as in one process.
        contract: of the run.
        may_undo: whether an owner may be passed over and its steps undone.
    """

    def __init__(self, server: Server, contract: Contract, *, may_undo: bool) -> None:
        self._server = server
        self._server.norm_limit = contract.norm_limit
        self._has_copies = contract.has_copies
        self._kinds = step_kinds(contract, TRAIN)
        self._may_undo = may_undo
        self._mean: CopiesMean | None = None
        self._twins: dict[int, Server] = {}
        self._before: State = {}

    def begin(self) -> None:
        """Get ready for a round, and forget one that was abandoned."""
        self._twins = {}
        self._mean = CopiesMean(self._server.side) if self._has_copies else None

    def answer(self, opened: LocalRound, pace: Pace, request: Request) -> Reply:
        """Return the reply to a message of an owner's step; each is applied once."""
        log, server = opened.log(request.client), self._server_of(request.client)
        if log.is_empty and self._may_undo and not self._has_copies:
            server.settle()
            self._before = snapshot.take({"server": server.side})
        server.pace = pace

        def compute(message: Request) -> Reply:
            return computed(message, server.answer)

        return log.answer(request, self._kinds, pace.first_step, compute)

    def undo(self, client: int) -> None:
        """Restore the backbone as it was before an owner's first step."""
        self._twins.pop(client, None)
        if not self._has_copies:
            self._server.settle()
            self._server.abandon_step()
            snapshot.put_back({"server": self._server.side}, self._before)

    def undo_round(self, _opened: OpenRound) -> bool:
        """Return false: the steps of those who stay are in the backbone by now."""
        return False

    def check(self, request: Request) -> None:
        """Accept every share: the server cannot read it."""

    def answers(self, opened: OpenRound) -> dict[int, Reply]:
        """Average the copies, and return the sum of all shares to each owner."""
        assert isinstance(opened, LocalRound)  # noqa: S101  this run has no others
        self.settle()
        opened.decide()
        if self._mean is not None:
            for client in opened.finished:
                self._mean.add(self._twins[client].side, opened.rows[client])
            self._mean.apply()
            self._twins = {}
        return added(opened, [opened.heard[one] for one in sorted(opened.heard)])

    def settle(self) -> None:
        """Update the weights by the last gradients."""
        for server in (self._server, *self._twins.values()):
            server.settle()

    def _server_of(self, client: int) -> Server:
        if not self._has_copies:
            return self._server
        if client not in self._twins:
            self._twins[client] = self._server.twin()
        return self._twins[client]
