"""Floating-point formats: each number on its own, without scales.

    fp32   as it is, the very same tensor
    fp16   10 bits of mantissa, up to 65,504, below 6e-8 it is zero
    bf16   7 bits of mantissa, the range of float32

Floats are rounded to the nearest. bf16 can also round stochastically, which slow
averages need: a small change that nearest rounding would always lose gets through on
average.
"""

import torch
from torch import Tensor

from lightsplit.codecs import TensorSpec
from lightsplit.errors import FormatError
from lightsplit.finite import all_finite
from lightsplit.formats.base import FORMATS, Format, check_float32
from lightsplit.formats.rounding import Rounding, Stochastic


@FORMATS.register("fp32")
class Float32(Format):
    """The numbers themselves: no cost, no loss."""

    name = "fp32"
    is_exact = True

    def layout(self, spec: TensorSpec) -> tuple[TensorSpec, ...]:
        """Return the spec unchanged."""
        return (spec,)

    def write(self, values: Tensor, _rounding: Rounding) -> tuple[Tensor, ...]:
        """Return the same tensor."""
        return (values,)

    def read(
        self, written: tuple[Tensor, ...], _shape: tuple[int, ...], _rounding: Rounding
    ) -> Tensor:
        """Return the same tensor."""
        return written[0]


class _HalfFloat(Format):
    """A format with half the bytes of float32."""

    dtype: torch.dtype

    def layout(self, spec: TensorSpec) -> tuple[TensorSpec, ...]:
        """Return a spec of the same shape with fewer bits."""
        return (TensorSpec(spec.shape, self.dtype),)

    def write(self, values: Tensor, rounding: Rounding) -> tuple[Tensor, ...]:
        """Return the numbers in fewer bits; refuse numbers that would overflow."""
        check_float32(values, self.name)
        written = self._narrow(values, rounding)
        if not all_finite(written):
            raise self._refusal(values)
        return (written,)

    def read(
        self, written: tuple[Tensor, ...], _shape: tuple[int, ...], _rounding: Rounding
    ) -> Tensor:
        """Return the numbers in float32."""
        return written[0].to(torch.float32)

    def _narrow(self, values: Tensor, _rounding: Rounding) -> Tensor:
        return values.to(self.dtype)

    def _refusal(self, values: Tensor) -> FormatError:
        if not all_finite(values):
            return FormatError(f"{self.name} cannot write a number that is not finite")
        return FormatError(
            f"{self.name} holds numbers up to {torch.finfo(self.dtype).max:.6g}, "
            f"got {values.abs().max().item():.6g}"
        )


@FORMATS.register("fp16")
class Float16(_HalfFloat):
    """IEEE half precision."""

    name = "fp16"
    dtype = torch.float16


@FORMATS.register("bf16")
class BFloat16(_HalfFloat):
    """The upper half of a float32."""

    name = "bf16"
    dtype = torch.bfloat16

    def _narrow(self, values: Tensor, rounding: Rounding) -> Tensor:
        if not isinstance(rounding, Stochastic) or not all_finite(values):
            return values.to(self.dtype)
        # Noise added to the lower half carries into the upper half with the right odds.
        noise = rounding.stream.bits(values.shape).to(values.device)
        bits = values.contiguous().view(torch.int32) + noise
        return (bits & -65536).view(torch.float32).to(self.dtype)
