"""Saves a networked run at boundaries, and restores it."""

from pathlib import Path

from lightsplit.deployment import server_checkpoint
from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.deployment.farewells import Farewells
from lightsplit.deployment.roster import Roster
from lightsplit.deployment.server_checkpoint import ServerState
from lightsplit.errors import RunError
from lightsplit.protocol import Contract
from lightsplit.runs.run_state import RunState


class SavedRun:
    """The checkpoints of one run at the server.

    Args:
        folder: of the checkpoints.
        contract: of the run.
        roster: its clients.
        state: where it stands.
        boundary: everything that turns change.

    Attributes:
        oldest_steps: of each client at the older of the two checkpoints that are kept;
            the run may return to it, so clients keep their sides from there on.
        oldest_number: the number of the next turn there.
        farewells: who has heard that the run is over.
        is_restored: whether the run continues from a checkpoint.
    """

    def __init__(
        self,
        folder: Path,
        contract: Contract,
        roster: Roster,
        state: RunState,
        boundary: BoundaryState,
    ) -> None:
        self._folder = folder
        self._contract = contract
        self._roster = roster
        self._state = state
        self._boundary = boundary
        self.farewells = Farewells(folder, roster)
        self.is_restored = False
        self.oldest_steps = [0] * contract.clients
        self._newest_steps = [0] * contract.clients
        self.oldest_number = self._newest_number = 0

    @property
    def exists(self) -> bool:
        """Return whether the run has been saved."""
        return server_checkpoint.exists(self._folder)

    def save(self, run: str) -> None:
        """Write a checkpoint of the run with this name; only at a boundary."""
        self._boundary.side.check_finite()
        progress, guard = self._state.progress, self._state.guard
        progress.bytes = self._roster.bytes_by_kind()
        saved = ServerState(
            run,
            self._boundary.number,
            self._roster.to_list(),
            progress,
            self._boundary.sealed_side,
            server=self._boundary.side.state(),
            guard=guard.state() if guard is not None else None,
            steps_before=self._newest_steps,
            number_before=self._newest_number,
            rounds=self._boundary.extras(),
        )
        self._write(saved)
        self.oldest_steps = self._newest_steps
        self._newest_steps = list(progress.client_steps)
        self.oldest_number = self._newest_number
        self._newest_number = self._boundary.number

    def restore(self) -> str:
        """Return to the newest checkpoint; return the run's name."""
        guard = self._state.guard
        saved = server_checkpoint.read(
            self._folder, self._contract, has_guard=guard is not None
        )
        self._state.progress = saved.progress
        self._boundary.number = saved.number
        self._boundary.sealed_side = saved.side
        self._boundary.side.load(saved.server)
        self._roster.restore(saved.members)
        if guard is not None and saved.guard is not None:
            guard.load(saved.guard)
        self.oldest_steps = saved.steps_before
        self._newest_steps = list(saved.progress.client_steps)
        self.oldest_number, self._newest_number = saved.number_before, saved.number
        self._boundary.restore_extras(saved.rounds)
        self.is_restored = True
        return saved.run

    def _write(self, saved: ServerState) -> None:
        try:
            server_checkpoint.write(self._folder, self._contract, saved)
        except OSError as error:
            raise RunError(
                f"cannot save the run in {self._folder}: {error.strerror or error}; "
                "the checkpoint before it is whole: mend this and resume from there"
            ) from error
