"""What happens at a cut: an encoder where a tensor is made, a decoder where it is used.

    activation (B, *shape) ──encoder──► Code(values, side) ──decoder──► (B, *shape)

``values`` is the one differentiable tensor: its gradient, of the same shape, is what
comes back. ``side`` holds what the decoder needs besides (indices, scales); no gradient
flows into it and nothing is sent back for it. Neither has to have a row per sample, so
a codec may work on the batch as a whole. How the numbers of ``values`` are written on
the wire (fp32, int8 …) is not the codec's business.
"""

import inspect
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from lightsplit.errors import CodecError, ConfigError
from lightsplit.registry import Registry, unknown_name


class Code(NamedTuple):
    """What crosses a cut: differentiable values and what is needed to read them."""

    values: Tensor
    side: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class TensorSpec:
    """The shape and type of a tensor before it exists."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    @cached_property
    def elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @cached_property
    def bytes(self) -> int:
        """How many bytes its numbers take, written as they are."""
        return self.elements * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {self.shape}"

    def fits(self, tensor: Tensor) -> bool:
        """Say whether ``tensor`` is of this shape and type."""
        return tensor.shape == self.shape and tensor.dtype == self.dtype


@dataclass(frozen=True)
class Layout:
    """Exactly what one batch puts on the wire, known before any tensor is made."""

    values: TensorSpec
    side: tuple[TensorSpec, ...] = ()

    @property
    def side_bytes(self) -> int:
        """Bytes of all side information."""
        return sum(spec.bytes for spec in self.side)

    @property
    def code_bytes(self) -> int:
        """Bytes of the whole code in fp32."""
        return self.values.bytes + self.side_bytes

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradient that comes back for it in fp32, sent whole."""
        return self.values.bytes

    @classmethod
    def of(cls, code: Code) -> Self:
        """Return the layout of a code that is there."""
        first, *rest = (
            TensorSpec(tuple(tensor.shape), tensor.dtype)
            for tensor in (code.values, *code.side)
        )
        return cls(first, tuple(rest))

    def __str__(self) -> str:
        return " with ".join(map(str, (self.values, *self.side)))

    def fits(self, code: Code) -> bool:
        """Say whether ``code`` is laid out like this."""
        if not self.values.fits(code.values) or len(self.side) != len(code.side):
            return False
        return all(map(TensorSpec.fits, self.side, code.side))

    def check(self, code: Code) -> None:
        """Raise unless ``code`` is laid out like this."""
        if not self.fits(code):
            raise CodecError(f"expected a code of {self}, got {Layout.of(code)}")


class Encoder(nn.Module):
    """Turns a batch of activations into a code. Its weights are the sender's."""

    def forward(self, activation: Tensor) -> Code:
        """Return the code of ``activation`` (B, *shape)."""
        raise NotImplementedError


class Decoder(nn.Module):
    """Turns a code into a batch of activations. Its weights are the receiver's."""

    def forward(self, code: Code) -> Tensor:
        """Return (B, *shape) for ``code``."""
        raise NotImplementedError


class Codec:
    """A pair of encoder and decoder for activations of one shape.

    Attributes:
        name: the registered name.
        shape: shape of one activation, without the batch.
        code_size: differentiable values per sample.
        fingerprint: SHA-256 of everything drawn from a seed, empty where nothing is;
            both sides compare it before the first step.
    """

    name: str
    encoder: Encoder
    decoder: Decoder
    fingerprint: str = ""

    def __new__(cls, *_: object, **options: object) -> Self:
        """Refuse options that the codec does not have, before it is built."""
        _check_names(cls, options)
        return super().__new__(cls)

    def __init__(self, shape: tuple[int, ...], code_size: int) -> None:
        self.shape = tuple(shape)
        self.code_size = code_size

    @property
    def activation_size(self) -> int:
        """Values in one activation (d)."""
        return math.prod(self.shape)

    @property
    def ratio(self) -> float:
        """The ratio d / k that was realised."""
        return self.activation_size / self.code_size

    @property
    def is_sample_wise(self) -> bool:
        """Say whether row i of a code belongs to sample i and to no other."""
        return True

    def layout(self, batch_size: int) -> Layout:
        """Return what a batch of ``batch_size`` samples puts on the wire."""
        return Layout(TensorSpec((batch_size, self.code_size)))

    def gradient_layout(self, values: TensorSpec) -> Layout:
        """Return what the gradient at a code's ``values`` puts on the wire."""
        return Layout(values)

    def encode_gradient(self, gradient: Tensor) -> Code:
        """Return what is sent back for the values; most codecs send the gradient."""
        return Code(gradient)

    def decode_gradient(self, code: Code) -> Tensor:
        """Return the gradient at the values that ``encode_gradient`` was given."""
        return code.values


CODECS: Registry[Codec] = Registry("codec")


def reduced_size(size: int, ratio: float) -> int:
    """Return k = floor(size / ratio), or refuse a ratio that cannot be.

    Example:
        >>> reduced_size(5684, 8)
        710
    """
    check_ratio(ratio)
    reduced = math.floor(size / ratio)
    if reduced < 1:
        raise ConfigError(f"ratio {ratio} leaves nothing of {size} values")
    return reduced


def check_ratio(ratio: float) -> None:
    """Raise unless ``ratio`` is a number of at least 1."""
    if not ratio >= 1:
        raise ConfigError(f"ratio must be at least 1, got {ratio}")


def size_of(shape: tuple[int, ...]) -> int:
    """Return how many values one activation of ``shape`` has, or refuse the shape."""
    if not shape or not all(isinstance(n, int) and n >= 1 for n in shape):
        raise ConfigError(f"shape must be positive integers, got {shape!r}")
    return math.prod(shape)


def check_rows(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise unless every sample of ``tensor`` (B, *shape) is of ``shape``."""
    if tensor.ndim == 0 or tuple(tensor.shape[1:]) != shape:
        expected = ", ".join(map(str, ("batch", *shape)))
        raise CodecError(f"expected ({expected}), got {tuple(tensor.shape)}")


def _check_names(codec: type[Codec], options: Iterable[str]) -> None:
    _, *parameters = inspect.signature(codec.__init__).parameters
    known = sorted(parameters)
    for option in options:
        if option not in known:
            raise ConfigError(unknown_name(f"{codec.name} option", option, known))
