"""One side that all owners of a round hold, in one process.

Over a network every owner has a copy of the shared head and tail, with its own
gradients and statistics. Here all owners hold one side: gradients and statistics are
swapped whenever another owner runs, and the first owner that gets the round's sum makes
the update for all. So a further owner costs no memory.
"""

from collections.abc import Sequence

from torch import Tensor

from lightsplit.protocol import Total
from lightsplit.runtime import Averaging, Side
from lightsplit.transports.sealing import SealingKey


class Seat:
    """Gradients and statistics of an owner while another one works."""

    def __init__(self) -> None:
        self.gradients: list[Tensor | None] | None = None
        self.buffers: list[Tensor] = []


class SharedSide(Averaging):
    """Averages the gradients of owners who hold one side.

    Args:
        side: that they hold.
        key: hides the parts of the sum; in one process there is nobody to hide from.
        batch_size: the largest batch of a step.
    """

    def __init__(self, side: Side, key: SealingKey, batch_size: int) -> None:
        super().__init__(key, batch_size)
        self._side = side
        self._first: list[Tensor] = []
        self._is_updated = False

    def begin_round(self, number: int) -> None:
        """Get ready for a round: its owners start with the side as it is now."""
        self.number = number
        self._first = [buffer.clone() for buffer in self._side.buffers]
        self._is_updated = False

    def apply(self, side: Side, total: Total) -> bool:
        """Apply the sum as for any side, but only once in a round."""
        if self._is_updated:
            return False
        self._is_updated = True
        return super().apply(side, total)

    def take(self, buffers: Sequence[Tensor], total: Total) -> None:
        """Take over the results of a round whose owners had copies of the side.

        Args:
            buffers: the statistics after the first owner's batch.
            total: the round's sum.
        """
        self.begin(self._side)
        self._put(buffers)
        self.apply(self._side, total)

    def enter(self, seat: Seat) -> None:
        """Put an owner's gradients and statistics in place."""
        if self._is_updated:
            return
        gradients = seat.gradients or [None] * len(self._side.trainable)
        for parameter, gradient in zip(self._side.trainable, gradients, strict=True):
            parameter.grad = gradient
        self._put(seat.buffers or self._first)

    def leave(self, seat: Seat) -> None:
        """Keep an owner's gradients and statistics."""
        if self._is_updated:
            return
        seat.gradients = [parameter.grad for parameter in self._side.trainable]
        seat.buffers = [buffer.clone() for buffer in self._side.buffers]
        self._put(self._first)

    def _put(self, buffers: Sequence[Tensor]) -> None:
        for buffer, value in zip(self._side.buffers, buffers, strict=True):
            buffer.data.copy_(value)  # a graph that is still open may hold the buffer
