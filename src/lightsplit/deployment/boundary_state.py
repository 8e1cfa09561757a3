"""Everything that a turn changes at the server."""

from collections.abc import Mapping
from typing import Any

import torch

from lightsplit.protocol.control import Finished
from lightsplit.runs import snapshot
from lightsplit.runtime import ServerSide, State


class BoundaryState:
    """The state between two turns, which a guard can return to.

    Args:
        side: of the server.

    Attributes:
        side: of the server.
        number: of the next turn; turns that were undone do not count.
        sealed_side: that the last turn handed on; empty if no side travels.
    """

    def __init__(self, side: ServerSide) -> None:
        self.side = side
        self.number = 0
        self.sealed_side = b""

    @property
    def last_turn(self) -> int:
        """The number that ``sealed_side`` was sealed under."""
        return max(self.number - 1, 0)

    def capture(self) -> State:
        """Return a copy of the state as tensors."""
        state = snapshot.take({"server": self.side})
        state["number"] = torch.tensor(self.number)
        if self.sealed_side:  # torch makes no tensor of an empty buffer
            blob = bytearray(self.sealed_side)
            state["side"] = torch.frombuffer(blob, dtype=torch.uint8)
        return state

    def put_back(self, state: State) -> None:
        """Return to a captured state.

        The next turn gets the number that followed the captured one: a seal is bound
        to its turn's number, so an older side opens under that number alone.
        """
        snapshot.put_back({"server": self.side}, state)
        self.number = int(state["number"])
        sealed = state.get("side")
        self.sealed_side = b"" if sealed is None else sealed.numpy().tobytes()

    def extras(self) -> dict[str, Any]:
        """Return what else a checkpoint keeps; nothing in a run of turns."""
        return {}

    def restore_extras(self, saved: Mapping[str, Any]) -> None:
        """Restore what else a checkpoint kept."""

    def finished(self, reason: str) -> Finished:
        """Return the message that tells clients that the run ended here."""
        return Finished(reason, self.last_turn, self.sealed_side)
