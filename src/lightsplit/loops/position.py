"""Where a connected model stands: part of its ``state_dict``.

A checkpoint of the user's own therefore says which updates it has, and the server can
follow it there.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor

_HEX_DIGITS = 15  # 60 bits, which an int64 holds


class Position(NamedTuple):
    """A point in a client's loop.

    Attributes:
        updates: steps of the client's optimizer that the server has followed.
        steps: forward passes in training; randomness derives from their numbers.
        run: number of the run; 0 before the first update.
    """

    updates: int = 0
    steps: int = 0
    run: int = 0

    @classmethod
    def of(cls, buffer: Tensor) -> Self:
        """Return the position that a buffer holds."""
        return cls(*map(int, buffer.tolist()))

    def to_tensor(self) -> Tensor:
        """Return the position as a buffer."""
        return torch.tensor(self, dtype=torch.int64)


def number_of(run: str) -> int:
    """Return the number of a run with this random name."""
    return int(run[:_HEX_DIGITS], 16)
