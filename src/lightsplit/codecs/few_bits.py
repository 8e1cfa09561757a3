"""What the codecs of few bits share: a trained map, rounding, packed bits, a lift.

    activation ──W──BatchNorm──► latent ──round──► values   at the client
    values ──levels, packed──► bytes ──► values             on the wire
    values ──lift──► activation                             at the server

W has no bias and BatchNorm no weights: the latent has mean 0 and variance 1, so a
threshold at 0 divides the samples into halves. W and the running statistics belong to
the client. Rounding has no useful derivative; a subclass says which gradient passes.

A sample is coded as a whole, or each of its tokens by itself: then the last dimension
of the activation is mapped, and the code has ``count`` values per token.

The lift is trained with a hidden layer (Linear · BatchNorm · ReLU · Linear), trained as
one linear map straight into the backbone, or fixed (the transpose of an orthonormal
projection that both ends can draw).
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from lightsplit.codecs.base import (
    Code,
    Codec,
    Coded,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    size_of,
)
from lightsplit.codecs.bit_packing import pack, packed_bytes, packed_samples, unpack
from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.errors import CodecError, ConfigError
from lightsplit.registry import unknown_name

LIFTS = ("fixed", "learned", "linear")
MOST_VALUES = 65_536


class RoundingEncoder(Encoder):
    """Maps activations to a latent and rounds it.

    Args:
        shape: shape of one activation.
        count: values per token, or per sample if the sample is coded as a whole.
        width: activation values that one such code is made from.
        hidden: width of a hidden layer in the map; 0 for a linear map.
    """

    def __init__(
        self, shape: tuple[int, ...], count: int, width: int, hidden: int = 0
    ) -> None:
        super().__init__()
        self.shape = shape
        self.width = width
        self.map = _make_map(width, hidden, count)
        self.norm = nn.BatchNorm1d(count, affine=False)

    def forward(self, activation: Tensor) -> Code:
        """Return the rounded latent of each sample."""
        return self.coded(activation).code

    def coded(self, activation: Tensor) -> Coded:
        """Return the rounded latent of each sample, with the latent."""
        latent = self.latent(activation)
        return Coded(latent, Code(self.round(latent)))

    def latent(self, activation: Tensor) -> Tensor:
        """Return the numbers (B, k) before they are rounded."""
        check_rows(activation, self.shape)
        mapped = self.map(activation.reshape(-1, self.width))
        return self._normed(mapped).reshape(activation.shape[0], -1)

    def round(self, latent: Tensor) -> Tensor:
        """Return the values that are sent, with a gradient for the latent."""
        raise NotImplementedError

    def _normed(self, mapped: Tensor) -> Tensor:
        if len(mapped) > 1 or not self.training:
            normed: Tensor = self.norm(mapped)
            return normed
        # One row has no statistics of its own, so it gets those of the rows before it.
        return batch_norm(mapped, self.norm.running_mean, self.norm.running_var)


def _make_map(width: int, hidden: int, count: int) -> nn.Module:
    """Return the trained map from activations to the latent."""
    if not hidden:
        return nn.Linear(width, count, bias=False)
    return nn.Sequential(
        nn.Linear(width, hidden, bias=False),
        nn.LayerNorm(hidden),  # needs no second sample, unlike BatchNorm
        nn.ReLU(),
        nn.Linear(hidden, count, bias=False),
    )


class FewBits(Codec):
    """A codec whose values have a few levels each, packed as bits on the wire.

    Args:
        shape: shape of one activation.
        seed: seed of a fixed lift.
        count: values per sample, or per token.
        levels: of one value, spread evenly from −1 to 1.
        lift: how the server lifts a code: learned, linear or fixed.
        hidden: width of a learned lift.
        per_token: whether each token is coded by itself.
    """

    def __init__(  # noqa: PLR0913
        self,
        shape: tuple[int, ...],
        seed: int,
        *,
        count: int,
        levels: int,
        lift: str,
        hidden: int,
        per_token: bool,
    ) -> None:
        size = size_of(tuple(shape))
        _check_lift({"lift": lift, "hidden": hidden})
        if per_token and len(shape) < 2:
            raise ConfigError(
                f"per_token needs activations (tokens, features), got shape {shape!r}"
            )
        self.levels = levels
        self.count = count
        self.token_size = shape[-1] if per_token else size
        super().__init__(shape, count * (size // self.token_size))
        self.level_bits = math.ceil(math.log2(levels))
        self.packed_bits = self.code_size * self.level_bits
        self.has_trained_lift = lift != "fixed"
        self.decoder = self._make_decoder(lift, hidden, seed)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        _check_lift(options)

    def pack(self, code: Code) -> Code:
        """Return the levels of the values, packed as bits."""
        lifted = (code.values + 1) * ((self.levels - 1) / 2)
        return Code(pack(lifted.round().long(), self.level_bits))

    def unpack(self, packed: Code) -> Code:
        """Return the values whose levels were packed; refuse levels out of range."""
        whole = unpack(packed.values, self.code_size, self.level_bits)
        if int(whole.max()) >= self.levels:
            raise CodecError(
                f"{self.name} expects levels from 0 to {self.levels - 1}, "
                f"got {int(whole.max())}"
            )
        return Code(values_of(whole, self.levels))

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout of the packed code of ``batch_size`` samples."""
        count = packed_bytes(batch_size, self.packed_bits)
        return Layout(TensorSpec((count,), torch.uint8))

    def packed_samples(self, packed: Tensor) -> int:
        """Return how many samples the packed values hold."""
        return packed_samples(packed, self.packed_bits)

    def _make_decoder(self, lift: str, hidden: int, seed: int) -> Decoder:
        if lift == "learned":
            layers = _hidden_lift(self.count, hidden, self.token_size)
            return LearnedLift(self.shape, self.code_size, self.count, layers)
        if lift == "linear":
            layer = nn.Linear(self.count, self.token_size)
            return LearnedLift(self.shape, self.code_size, self.count, layer)
        if self.count > self.token_size:
            raise ConfigError(
                f"a fixed lift needs at most {self.token_size} values, got "
                f"{self.count}; use lift=learned or lift=linear"
            )
        drawn = PROJECTIONS.create(
            "dct", size=self.token_size, code_size=self.count, seed=seed
        )
        self.fingerprint = drawn.fingerprint
        return FixedLift(self.shape, drawn)


class LearnedLift(Decoder):
    """Lifts the values of each sample or token with trained layers."""

    def __init__(
        self, shape: tuple[int, ...], code_size: int, count: int, layers: nn.Module
    ) -> None:
        super().__init__()
        self.shape = shape
        self.code_size = code_size
        self.count = count
        self.layers = layers

    def forward(self, code: Code) -> Tensor:
        """Return the lifted activations."""
        check_rows(code.values, (self.code_size,))
        lifted: Tensor = self.layers(code.values.reshape(-1, self.count))
        return lifted.view(code.values.shape[0], *self.shape)


def _hidden_lift(count: int, hidden: int, token_size: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(count, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, token_size),
    )


class FixedLift(Decoder):
    """Lifts the values of each sample or token by the transpose of a projection."""

    def __init__(self, shape: tuple[int, ...], projection: Projection) -> None:
        super().__init__()
        self.shape = shape
        self.projection = projection
        tokens = size_of(shape) // projection.size
        self.code_size = projection.code_size * tokens

    def forward(self, code: Code) -> Tensor:
        """Return the lifted activations."""
        check_rows(code.values, (self.code_size,))
        rows = code.values.reshape(-1, self.projection.code_size)
        return self.projection.lift(rows).reshape(code.values.shape[0], *self.shape)


def values_of(whole: Tensor, levels: int) -> Tensor:
    """Return the value of each level: evenly spread from −1 to 1.

    Example:
        >>> values_of(torch.tensor([0, 1, 2]), levels=3)
        tensor([-1.,  0.,  1.])
    """
    return whole.to(torch.float32) * (2 / (levels - 1)) - 1


def check_count(name: str, count: int) -> None:
    """Raise ConfigError unless a code may have ``count`` values."""
    if not 1 <= count <= MOST_VALUES:
        raise ConfigError(f"{name} must be from 1 to {MOST_VALUES:,}, got {count}")


def _check_lift(options: Mapping[str, Any]) -> None:
    lift = options.get("lift", "learned")
    if lift not in LIFTS:
        raise ConfigError(unknown_name("lift", lift, list(LIFTS)))
    check_count("hidden", options.get("hidden", 1))
