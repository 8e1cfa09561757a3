"""The common part of networked runs of turns and of rounds, at the server."""

from pathlib import Path
from typing import Generic, TypeVar

from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.deployment.roster import Roster
from lightsplit.deployment.saved_run import SavedRun
from lightsplit.deployment.stopwatch import Stopwatch
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished, Welcome
from lightsplit.runs.guard import Guard
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.progress import Progress
from lightsplit.runs.run_state import RunState

AnyBoundary = TypeVar("AnyBoundary", bound=BoundaryState)


class NetworkedRun(Generic[AnyBoundary]):
    """The state of a run, its clients and its checkpoints.

    Args:
        contract: of the run.
        plan: of the run.
        roster: its clients.
        boundary: everything that turns or rounds change.
        run: its random name.
        folder: for checkpoints; the run resumes from the newest one in it.
        guard: judges the clients.

    Attributes:
        state: where the run stands.
        finished: the message that ends the run, once it is over.
        computing: how long this server has been computing steps.
    """

    def __init__(  # noqa: PLR0913
        self,
        contract: Contract,
        plan: RunPlan,
        roster: Roster,
        boundary: AnyBoundary,
        *,
        run: str,
        folder: Path,
        guard: Guard | None = None,
    ) -> None:
        self.contract = contract
        self.plan = plan
        self.run = run
        self.finished: Finished | None = None
        self.computing = Stopwatch()
        self.state = RunState(
            contract.clients,
            eval_every=plan.eval_every,
            patience=plan.patience,
            guard=guard,
            monitor=plan.monitor,
        )
        self._roster = roster
        self._boundary = boundary
        self._saved = SavedRun(folder, contract, roster, self.state, boundary)

    @property
    def progress(self) -> Progress:
        """How far the run has come."""
        return self.state.progress

    @property
    def is_restored_over(self) -> bool:
        """Return whether the checkpoint that the run was restored from is its end."""
        return self._saved.is_restored and self.state.stop_reason is not None

    def save_told(self) -> None:
        """Keep on disk which clients know of the end."""
        self._saved.farewells.save(self.run, self.progress.steps)

    def recall_told(self) -> None:
        """Find out which clients an earlier server has told of the end."""
        self._saved.farewells.recall(self.run, self.progress.steps)

    def welcome_to_predict(self, index: int) -> Welcome:
        """Return the welcome of a client that only predicts, with the newest side."""
        boundary = self._boundary
        return Welcome(index, self.run, boundary.last_turn, boundary.sealed_side)

    def count_bytes(self) -> None:
        """Add up the bytes of all clients; too slow to do in every turn."""
        self.progress.bytes = self._roster.bytes_by_kind()
