"""The interface of a wire format: float32 numbers to written tensors, and back.

    values (B, …) float32 ──write──► (numbers, scales …) ──read──► values (B, …)

Both ends hold the same format and the same rounding, so the sender knows which numbers
the receiver reads. The receiver takes its gradient at the numbers that it read.
"""

import torch
from torch import Tensor

from lightsplit.codecs import TensorSpec
from lightsplit.errors import FormatError
from lightsplit.formats.rounding import Rounding
from lightsplit.registry import Registry


class Format:
    """How float32 numbers are written.

    Attributes:
        name: the registered name.
        is_exact: whether reading gives back the written numbers, bit for bit.
        tensors: how many tensors one tensor becomes.
    """

    name: str
    is_exact = False
    tensors = 1

    def layout(self, spec: TensorSpec) -> tuple[TensorSpec, ...]:
        """Return the specs of the tensors that a tensor of ``spec`` becomes."""
        raise NotImplementedError

    def write(self, values: Tensor, rounding: Rounding) -> tuple[Tensor, ...]:
        """Return the written tensors; refuse numbers that cannot be written."""
        raise NotImplementedError

    def read(
        self, written: tuple[Tensor, ...], shape: tuple[int, ...], rounding: Rounding
    ) -> Tensor:
        """Return the values of ``shape`` that the written tensors stand for."""
        raise NotImplementedError


FORMATS: Registry[Format] = Registry("wire format")


def check_float32(values: Tensor, name: str) -> None:
    """Raise unless ``values`` are float32."""
    if values.dtype != torch.float32:
        raise FormatError(f"{name} writes float32, got {values.dtype}")


def rows_of(values: Tensor) -> Tensor:
    """Return ``values`` as (rows, numbers of one row)."""
    return values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
