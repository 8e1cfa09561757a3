"""What codecs share that write a whole batch as bytes themselves.

    activation ──encoder──► values (B, *shape), side: the bytes (n,)
    the bytes ──► values (B, *shape)                                 at the receiver

The values are the activation as the receiver will read it; the gradient passes straight
through to the activation. The bytes alone travel, so a wire format has nothing to do.
"""

from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs.base import (
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    size_of,
)
from lightsplit.errors import CodecError


class SelfPacked(Codec):
    """A codec that writes the activations of a batch as bytes."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape, size_of(tuple(shape)))

    @property
    def is_sample_wise(self) -> bool:
        """Return False: what is kept of a sample depends on the others."""
        return False

    def written_bytes(self, batch_size: int) -> int:
        """Return the bytes of the code of ``batch_size`` samples."""
        raise NotImplementedError

    def read(self, written: Tensor) -> Tensor:
        """Return the values (B, *shape) that were written; refuse other bytes."""
        raise NotImplementedError

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        written = self.packed_layout(batch_size).values
        return Layout(TensorSpec((batch_size, *self.shape)), (written,))

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout of the bytes."""
        return Layout(TensorSpec((self.written_bytes(batch_size),), torch.uint8))

    def pack(self, code: Code) -> Code:
        """Return the bytes."""
        return Code(code.side[0])

    def unpack(self, packed: Code) -> Code:
        """Return what the receiver reads, with the bytes that it came from."""
        return Code(self.read(packed.values), (packed.values,))

    def rows(self, code: Code) -> Tensor:
        """Return the values, which have a row per sample."""
        return code.values

    def _batch_size(self, written: Tensor, sample_bits: float) -> int:
        """Return how many samples were written; refuse bytes that fit no batch."""
        if written.ndim == 1 and written.dtype == torch.uint8:
            about = int(8 * len(written) / sample_bits)
            for size in range(max(1, about - 1), about + 2):
                if self.written_bytes(size) == len(written):
                    return size
        raise CodecError(
            f"{self.name} expects the bytes of a batch, got {written.dtype} "
            f"{tuple(written.shape)}"
        )


class WritingEncoder(Encoder):
    """Writes a batch as bytes, and returns what its receiver will read."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, activation: Tensor) -> Code:
        """Return the values as the receiver reads them, and their bytes."""
        check_rows(activation, self.shape)
        return self.write(activation)

    def write(self, activation: Tensor) -> Code:
        """Return values and bytes of a batch of the right shape."""
        raise NotImplementedError


class ReadingDecoder(Decoder):
    """Passes on the values that were read."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, code: Code) -> Tensor:
        """Return a copy of the values."""
        check_rows(code.values, self.shape)
        return code.values.clone()


def straight_through(activation: Tensor, read: Tensor) -> Tensor:
    """Return ``read``; its gradient goes to ``activation`` unchanged."""
    passed: Tensor = _StraightThrough.apply(activation, read)  # type: ignore[no-untyped-call]
    return passed


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, _activation: Tensor, read: Tensor) -> Tensor:
        return read.view_as(read)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None
