"""SplitFC: columns of a batch dropped at random, the others in a budget of bits.

    F (B, d) ──drop──► column i with probability 1 − q_i, else F_i/q_i    in training
             ──quantise──► at most ``bits_per_value``·B·d bits            (two kinds)
    gradient ──the same columns, quantised──► ``gradient_bits``·B·d bits

A column (a feature) that differs more between samples is kept more often: q_i grows
with its standard deviation, after each channel is scaled to 0 … 1, and Σ q_i = d/ρ. The
division keeps the mean. Columns that were dropped get no gradient. In prediction
nothing is dropped.

Oh, Lee, Brinton, Jeon: Communication-efficient split learning via adaptive feature-wise
compression, 2023. The formula of the probabilities is ours (min(1, τ·σ_i)); the levels
of each column travel, so that both ends need not compute the same real numbers.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs.base import CODECS, Code, Decoder, Layout, TensorSpec, check_rows
from lightsplit.codecs.self_packed import SelfPacked, WritingEncoder, straight_through
from lightsplit.codecs.splitfc_columns import (
    Columns,
    least_bytes,
    read_batch,
    read_columns,
    read_kept,
    write_columns,
)
from lightsplit.errors import CodecError, ConfigError
from lightsplit.part_facts import PartFacts

_BISECTIONS = 60


@CODECS.register("splitfc")
class SplitFC(SelfPacked):
    """Drops features that differ little, and quantises the rest in a budget of bits.

    Args:
        shape: shape of one activation.
        seed: not used; what is dropped comes from the client's secret.
        bits_per_value: bits of a code for each value of the activation; default: 0.5.
        gradient_bits: likewise for the gradient that comes back; default: 0.5.
        reduction: factor ρ by which dropping shortens a batch in training; default: 8.
    """

    name = "splitfc"
    facts = PartFacts(
        source="Oh et al., TNNLS 2025 (arXiv 2307.10805)",
        assumes="batches of 32 samples or more to be short",
        client_cost="sorting columns and a search for levels per batch",
        attacker="decodes columns first; averages dropped ones over epochs",
        status="adapted",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        seed: int = 0,  # noqa: ARG002  every codec takes a seed, this one draws nothing
        *,
        bits_per_value: float = 0.5,
        gradient_bits: float = 0.5,
        reduction: float = 8.0,
    ) -> None:
        super().__init__(shape)
        self.check_options(
            {
                "bits_per_value": bits_per_value,
                "gradient_bits": gradient_bits,
                "reduction": reduction,
            }
        )
        self.bits_per_value = bits_per_value
        self.gradient_bits = gradient_bits
        self.packed_bits = max(1, int(bits_per_value * self.activation_size))
        self.encoder = DroppingEncoder(self, reduction)
        self.decoder = ColumnDecoder(self.shape)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        for name in ("bits_per_value", "gradient_bits"):
            if not 0 < options.get(name, 1) <= 32:
                raise ConfigError(
                    f"{name} must be above 0 and at most 32, got {options[name]}"
                )
        if not options.get("reduction", 1) >= 1:
            raise ConfigError(
                f"reduction must be at least 1, got {options['reduction']}"
            )

    def written_bytes(self, batch_size: int) -> int:
        """Return the bytes of the code of ``batch_size`` samples."""
        return self._budget(batch_size, self.bits_per_value)

    def read(self, written: Tensor) -> Tensor:
        """Return the values (B, *shape) that were written; refuse other bytes."""
        return self._read(written, self.bits_per_value)

    def gradient_layout(self, values: TensorSpec) -> Layout:
        """Return the layout of the quantised gradient."""
        count = self._budget(values.shape[0], self.gradient_bits)
        return Layout(TensorSpec((count,), torch.uint8))

    def encode_gradient(self, gradient: Tensor) -> Code:
        """Return the quantised columns of a gradient that are not all zero."""
        rows = gradient.flatten(1).double().cpu()
        columns = Columns(rows.numpy(), (rows != 0).any(dim=0).numpy())
        budget = self._budget(len(rows), self.gradient_bits)
        return Code(
            torch.from_numpy(write_columns(columns, budget)).to(gradient.device)
        )

    def decode_gradient(self, code: Code) -> Tensor:
        """Return the gradient as quantised."""
        return self._read(code.values, self.gradient_bits)

    def _budget(self, batch_size: int, bits: float) -> int:
        size = self.activation_size
        return max(int(batch_size * size * bits / 8), least_bytes(size))

    def _read(self, written: Tensor, bits: float) -> Tensor:
        if written.ndim != 1 or written.dtype != torch.uint8:
            raise CodecError(
                f"splitfc expects bytes, got {written.dtype} {tuple(written.shape)}"
            )
        plain = written.cpu().numpy()
        batch = read_batch(plain)
        expected = self._budget(batch, bits)
        if len(plain) != expected:
            raise CodecError(
                f"splitfc expects {expected} bytes for {batch} samples, got "
                f"{len(plain)}"
            )
        rows = torch.from_numpy(read_columns(plain, self.activation_size)).float()
        return rows.view(batch, *self.shape).to(written.device)


class DroppingEncoder(WritingEncoder):
    """Drops columns in training, and writes the others."""

    def __init__(self, codec: SplitFC, reduction: float) -> None:
        super().__init__(codec.shape)
        self._codec = codec
        self.reduction = reduction

    def write(self, activation: Tensor) -> Code:
        """Return values and bytes of a batch of the right shape."""
        kept = torch.ones_like(activation[0])
        if self.training:
            odds = keep_probabilities(activation.detach(), self.reduction)
            kept = (torch.rand_like(odds) < odds) / odds.clamp(min=1e-12)
        scaled = activation * kept
        rows = scaled.detach().flatten(1).double().cpu().numpy()
        columns = Columns(rows, (kept > 0).flatten().cpu().numpy())
        budget = self._codec.written_bytes(len(rows))
        written = torch.from_numpy(write_columns(columns, budget)).to(activation.device)
        return Code(straight_through(scaled, self._codec.read(written)), (written,))


class ColumnDecoder(Decoder):
    """Passes values on; columns that were dropped get no gradient."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, code: Code) -> Tensor:
        """Return the values."""
        check_rows(code.values, self.shape)
        is_kept = read_kept(code.side[0].cpu().numpy(), code.values[0].numel())
        kept = torch.from_numpy(is_kept).view(self.shape).to(code.values.device)
        return code.values * kept


def keep_probabilities(activation: Tensor, reduction: float) -> Tensor:
    """Return how likely each column of (B, *shape) is kept; they add up to d/ρ.

    q_i = min(1, τ·σ_i): σ_i is the standard deviation of the column after the numbers
    of each channel (the first dimension of the shape) were scaled to 0 … 1.
    """
    by_channel = activation.flatten(2) if activation.ndim > 2 else activation[:, None]
    low = by_channel.amin(dim=(0, 2), keepdim=True)
    span = by_channel.amax(dim=(0, 2), keepdim=True) - low
    scaled = (by_channel - low) / torch.where(span > 0, span, 1)
    spread = scaled.std(dim=0, correction=0).double().flatten()
    wanted = len(spread) / reduction
    if int((spread > 0).sum()) <= wanted:  # too few columns differ: take any
        spread = torch.ones_like(spread)
    low_factor, high_factor = 0.0, 1.0
    while float((spread * high_factor).clamp(max=1).sum()) < wanted:
        high_factor *= 2
        if high_factor > 1e300:  # pragma: no cover  spreads below any float
            break
    for _ in range(_BISECTIONS):
        middle = (low_factor + high_factor) / 2
        if float((spread * middle).clamp(max=1).sum()) < wanted:
            low_factor = middle
        else:
            high_factor = middle
    odds = (spread * high_factor).clamp(max=1).to(activation.dtype)
    return odds.view(activation.shape[1:])
