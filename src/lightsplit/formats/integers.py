"""Integer formats: whole multiples of a scale, one scale for each row.

    row x ──► s = max|x| / L, rounded up to bf16 ──► q = round(x / s) ──► int8, or two
    int4 to a byte ──► x̂ = q · s

L is 127 or 7. The scale is a bf16, which has the range of float32: gradients of 1e-12
and activations of 1e12 keep the same relative precision. It is rounded up, so |x / s|
never exceeds L; a row of zeros has scale 0. ``rounding.py`` does the rounding.
"""

import math

import torch
from torch import Tensor

from lightsplit.codecs import TensorSpec
from lightsplit.errors import FormatError, ProtocolError
from lightsplit.formats.base import FORMATS, Format, check_float32, rows_of
from lightsplit.formats.rounding import Rounding

_LOWER_HALF = 0xFFFF
_FLOAT32_MAX = torch.finfo(torch.float32).max
_LARGEST = _FLOAT32_MAX / 2  # keeps the rounded-up scale within float32


class _Scaled(Format):
    """Whole numbers from −``limit`` − 1 to ``limit``, with a scale for each row."""

    limit: int
    tensors = 2

    def layout(self, spec: TensorSpec) -> tuple[TensorSpec, ...]:
        """Return the specs of the whole numbers and the scales."""
        rows = spec.shape[0] if spec.shape else 1
        numbers = self._numbers(spec.shape, rows)
        return numbers, TensorSpec((rows,), torch.bfloat16)

    def write(self, values: Tensor, rounding: Rounding) -> tuple[Tensor, ...]:
        """Return whole numbers and scales; refuse numbers that are not finite."""
        check_float32(values, self.name)
        rows = rows_of(values)
        scales = self._scales(rows)
        steps = scales.where(scales > 0, 1).unsqueeze(1)
        whole = rounding.round_(rows / steps, self.limit)
        return self._pack(whole, values.shape), scales.to(torch.bfloat16)

    def read(
        self, written: tuple[Tensor, ...], shape: tuple[int, ...], rounding: Rounding
    ) -> Tensor:
        """Return the whole numbers times their scales."""
        numbers, scales = written
        steps = scales.to(torch.float32).unsqueeze(1)
        if not steps.abs().max().item() * (self.limit + 1) <= _FLOAT32_MAX:
            raise ProtocolError(
                f"a scale of {self.name} exceeds the range of float32",
                code="not-finite",
            )
        whole = self._unpack(numbers, shape)
        return rounding.restore_(whole).mul_(steps).reshape(shape)

    def _scales(self, rows: Tensor) -> Tensor:
        peaks = torch.linalg.vector_norm(rows, ord=math.inf, dim=1)
        highest = peaks.max().item()
        if not math.isfinite(highest):
            raise FormatError(f"{self.name} cannot write a number that is not finite")
        if highest > _LARGEST:
            raise FormatError(
                f"{self.name} holds numbers up to {_LARGEST:.6g}, got {highest:.6g}"
            )
        # Positive floats sort like their bits, so this gives the next bf16 above.
        bits = (peaks / self.limit).view(torch.int32) + _LOWER_HALF
        above: Tensor = (bits & ~_LOWER_HALF).view(torch.float32)
        return above

    def _numbers(self, shape: tuple[int, ...], rows: int) -> TensorSpec:
        raise NotImplementedError

    def _pack(self, whole: Tensor, shape: torch.Size) -> Tensor:
        raise NotImplementedError

    def _unpack(self, numbers: Tensor, shape: tuple[int, ...]) -> Tensor:
        raise NotImplementedError


@FORMATS.register("int8")
class Int8(_Scaled):
    """One byte for each number."""

    name = "int8"
    limit = 127

    def _numbers(self, shape: tuple[int, ...], _rows: int) -> TensorSpec:
        return TensorSpec(shape, torch.int8)

    def _pack(self, whole: Tensor, shape: torch.Size) -> Tensor:
        return whole.to(torch.int8).view(shape)

    def _unpack(self, numbers: Tensor, _shape: tuple[int, ...]) -> Tensor:
        return rows_of(numbers).to(torch.float32)


@FORMATS.register("int4")
class Int4(_Scaled):
    """Two numbers per byte, the first in the lower half; rows end at a byte."""

    name = "int4"
    limit = 7

    def _numbers(self, shape: tuple[int, ...], rows: int) -> TensorSpec:
        width = math.prod(shape) // rows
        return TensorSpec((rows, -(-width // 2)), torch.uint8)

    def _pack(self, whole: Tensor, _shape: torch.Size) -> Tensor:
        lifted = whole.add_(8).to(torch.uint8)
        packed = lifted[:, 0::2].clone()
        upper = lifted[:, 1::2]
        packed[:, : upper.shape[1]] |= upper << 4
        return packed

    def _unpack(self, numbers: Tensor, shape: tuple[int, ...]) -> Tensor:
        rows = len(numbers)
        width = math.prod(shape) // rows
        whole = numbers.new_empty((rows, 2 * numbers.shape[1]), dtype=torch.float32)
        whole[:, 0::2] = numbers & 15
        whole[:, 1::2] = numbers >> 4
        return whole[:, :width].sub_(8)
