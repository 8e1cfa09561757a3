"""Everything that a round changes at the server, and which sides are up to date."""

from collections.abc import Mapping
from typing import Any

from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished
from lightsplit.runtime import ServerSide


class RoundBoundary(BoundaryState):
    """The state between two rounds.

    Args:
        side: of the server.
        contract: of the run.

    Attributes:
        versions: for each owner, the round that its copy of a shared side is ready for.
        batches: of each owner per epoch, as the schedule counts them.
        sealed_at: the round that left ``sealed_side``.
    """

    def __init__(self, side: ServerSide, contract: Contract) -> None:
        super().__init__(side)
        self._averages_side = contract.averages_side
        self.versions = [0] * contract.clients
        self.batches: list[int] = []
        self.sealed_at = 0

    @property
    def last_turn(self) -> int:
        """The number that ``sealed_side`` was sealed under."""
        return self.sealed_at

    @property
    def has_newest_side(self) -> bool:
        """Return whether the sealed side is the one that the next round begins with."""
        return bool(self.sealed_side) and self.sealed_at == self.number - 1

    def finished(self, reason: str) -> Finished:
        """Return the end of the run, with its last side if an owner handed it in."""
        side = self.sealed_side if self.has_newest_side else b""
        return Finished(reason, max(self.number - 1, 0), side)

    def needs_side(self, client: int) -> bool:
        """Return whether an owner needs the sealed side to begin the next round."""
        return self._averages_side and self.versions[client] != self.number

    def is_ready(self, client: int) -> bool:
        """Return whether an owner can begin the next round now."""
        return self.has_newest_side or not self.needs_side(client)

    def take(self, client: int, number: int, side: bytes) -> None:
        """Note that an owner has handed in a round, perhaps with the sealed side."""
        self.versions[client] = number + 1
        if side:
            self.sealed_side, self.sealed_at = side, number

    def extras(self) -> dict[str, Any]:
        """Return what else a checkpoint keeps."""
        return {
            "versions": self.versions,
            "batches": self.batches,
            "sealed_at": self.sealed_at,
        }

    def restore_extras(self, saved: Mapping[str, Any]) -> None:
        """Restore what else a checkpoint kept."""
        self.versions = [int(one) for one in saved["versions"]]
        self.batches = [int(one) for one in saved["batches"]]
        self.sealed_at = int(saved["sealed_at"])
