"""Mask-encoded sparsification: the largest values, and a coarse mask of all others.

    kept     the k·B largest values of the batch                    32 bits each
    mask     for every value: kept, or its level below the k·B-th   w bits each

    unsigned   t·m/(2^w − 1)      m = 0 … 2^w − 2                   (numbers ≥ 0)
    signed     t·m/2^(w−1)        m = −(2^(w−1) − 1) … 2^(w−1) − 1

t is the smallest kept magnitude. Its levels say roughly what plain sparsification
leaves out, and so the server's gradient is less biased. Because the mask costs w bits
for each value, no setting compresses more than 32 / w times. The gradient comes back
whole: give it a wire format of its own (``format = "code_gradient=int8"``).

The published code takes activations behind a ReLU. With ``signed`` magnitudes decide,
and the levels lie on both sides of zero, for the same number of bits.

Zhou, Qu, Lyu, Cai, Ye: Mask-encoded sparsification, ECAI 2024.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs.base import CODECS, Code
from lightsplit.codecs.bit_packing import pack, packed_bytes, unpack
from lightsplit.codecs.self_packed import (
    ReadingDecoder,
    SelfPacked,
    WritingEncoder,
    straight_through,
)
from lightsplit.errors import CodecError, ConfigError
from lightsplit.part_facts import PartFacts

MOST_MASK_BITS = 8


@CODECS.register("mask-sparse")
class MaskSparse(SelfPacked):
    """Sends the largest values of a batch, and a few bits for each of the others.

    Args:
        shape: shape of one activation.
        ratio: values for each value that is kept whole, of which a sample has at least
            one; default: 100.
        seed: not used.
        mask_bits: bits of the mask for each value; default: 2.
        signed: whether activations may be negative; default: no.
    """

    name = "mask-sparse"
    facts = PartFacts(
        source="Zhou et al., ECAI 2024",
        assumes="activations behind a ReLU, unless signed=true",
        client_cost="a search for the largest values of the batch",
        attacker="decodes kept values and levels first",
        status="faithful",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 100.0,
        seed: int = 0,  # noqa: ARG002  every codec takes a seed, this one draws nothing
        *,
        mask_bits: int = 2,
        signed: bool = False,
    ) -> None:
        super().__init__(shape)
        self.check_options({"ratio": ratio, "mask_bits": mask_bits})
        self.kept = max(1, math.floor(self.activation_size / ratio))
        self.mask = Mask(mask_bits, is_signed=signed)
        self.packed_bits = mask_bits * self.activation_size + 32 * self.kept
        self.encoder = MaskEncoder(self.shape, self.kept, self.mask)
        self.decoder = ReadingDecoder(self.shape)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        bits = options.get("mask_bits", 1)
        if not 1 <= bits <= MOST_MASK_BITS:
            raise ConfigError(
                f"mask_bits must be from 1 to {MOST_MASK_BITS}, got {bits}"
            )

    def written_bytes(self, batch_size: int) -> int:
        """Return the bytes of the code of ``batch_size`` samples."""
        sample_bits = self.mask.bits * self.activation_size
        return 4 * self.kept * batch_size + packed_bytes(batch_size, sample_bits)

    def read(self, written: Tensor) -> Tensor:
        """Return the values (B, *shape) that were written; refuse other bytes."""
        samples = self._batch_size(written, self.packed_bits)
        end = 4 * self.kept * samples
        values = written[:end].clone().view(torch.float32)
        codes = unpack(written[end:], self.activation_size, self.mask.bits)
        return self.mask.read(values, codes).view(samples, *self.shape)


class Mask:
    """The levels of values that are not kept, and how a mask tells them.

    Args:
        bits: of each value.
        is_signed: whether levels lie on both sides of zero.
    """

    def __init__(self, bits: int, *, is_signed: bool) -> None:
        self.bits = bits
        self.is_signed = is_signed
        self.kept_code = 2**bits - 1
        self.steps = 2 ** (bits - 1) if is_signed else 2**bits - 1  # from 0 to t
        self.lowest = 1 - self.steps if is_signed else 0

    def codes(self, rows: Tensor, is_kept: Tensor, least: Tensor) -> Tensor:
        """Return the code of each value of (B, d), given the smallest kept one."""
        scale = (least / self.steps).clamp(min=torch.finfo(rows.dtype).tiny)
        level = (rows / scale).round().clamp(self.lowest, self.steps - 1)
        return torch.where(is_kept, self.kept_code, (level - self.lowest).long())

    def read(self, values: Tensor, codes: Tensor) -> Tensor:
        """Return the numbers (B, d) that kept values and codes stand for."""
        is_kept = codes == self.kept_code
        if int(is_kept.sum()) != len(values):
            raise CodecError(
                f"expected a mask with {len(values)} kept values, got "
                f"{int(is_kept.sum())}"
            )
        if not bool(values.isfinite().all()):
            raise CodecError("expected kept values that are finite")
        scale = values.abs().min() / self.steps
        read: Tensor = (codes + self.lowest).to(values.dtype) * scale
        read[is_kept] = values
        return read


class MaskEncoder(WritingEncoder):
    """Keeps the largest values of a batch and rounds the others."""

    def __init__(self, shape: tuple[int, ...], kept: int, mask: Mask) -> None:
        super().__init__(shape)
        self.kept = kept
        self.mask = mask

    def write(self, activation: Tensor) -> Code:
        """Return values and bytes of a batch of the right shape."""
        rows = activation.detach().flatten(1)
        sizes = self._sizes(rows).flatten()
        largest = sizes.topk(self.kept * len(rows), sorted=False)
        is_kept = torch.zeros_like(sizes, dtype=torch.bool)
        is_kept[largest.indices] = True
        is_kept = is_kept.view_as(rows)
        codes = self.mask.codes(rows, is_kept, largest.values.min())
        kept = rows[is_kept]  # in order of place
        read = self.mask.read(kept, codes).view_as(activation)
        numbers = kept.contiguous().view(torch.uint8)
        written = torch.cat([numbers, pack(codes, self.mask.bits)])
        return Code(straight_through(activation, read), (written,))

    def _sizes(self, rows: Tensor) -> Tensor:
        if self.mask.is_signed:
            return rows.abs()
        if bool((rows < 0).any()):
            raise CodecError(
                "mask-sparse expects activations of 0 or more, as behind a ReLU, got "
                f"{float(rows.min()):.3g}; use mask-sparse:signed=true"
            )
        return rows
