"""The interface of a codec: an encoder at the sender, a decoder at the receiver.

    activation (B, *shape) ──encoder──► Code(values, side) ──decoder──► (B, *shape)

``values`` is the one differentiable tensor; a gradient of the same shape comes back for
it. ``side`` holds other tensors that the decoder needs (indices, scales); they have no
gradient. Neither needs a row per sample, so a codec may work on the batch as a whole.
The codec does not decide how the numbers of ``values`` are written on the wire (fp32,
int8 …), unless it packs them itself: values of a few levels travel as bits.
"""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from lightsplit.errors import CodecError, ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.registry import Registry, unknown_name


class Code(NamedTuple):
    """A coded batch: differentiable values, and tensors needed to decode them."""

    values: Tensor
    side: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class TensorSpec:
    """The shape and type of a tensor before it exists.

    Attributes:
        shape: all sizes.
        dtype: of its elements.
        is_most: whether the first size is the largest one that the tensor may have.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    is_most: bool = False

    @property
    def elements(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of its elements without compression."""
        return self.elements * self.dtype.itemsize

    def __str__(self) -> str:
        up_to = "up to " if self.is_most else ""
        return f"{up_to}{str(self.dtype).removeprefix('torch.')} {self.shape}"

    def fits(self, tensor: Tensor) -> bool:
        """Return whether ``tensor`` has this shape and type."""
        return self.allows(TensorSpec(tuple(tensor.shape), tensor.dtype))

    def allows(self, claimed: "TensorSpec") -> bool:
        """Return whether a tensor of the ``claimed`` shape and type would fit."""
        if not self.is_most or not claimed.shape:
            return claimed == self
        is_short = 1 <= claimed.shape[0] <= self.shape[0]
        same = (claimed.shape[1:], claimed.dtype) == (self.shape[1:], self.dtype)
        return is_short and same


@dataclass(frozen=True)
class Layout:
    """Shapes and types of a code, known before any tensor is made.

    The shape of the values is exact. Where a side tensor is as long as its content
    takes, its longest form stands here, and bytes are an upper bound.
    """

    values: TensorSpec
    side: tuple[TensorSpec, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether all sizes, and so the bytes, are exact."""
        return not any(spec.is_most for spec in self.side)

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
        """Bytes of the whole gradient at the values in fp32."""
        return self.values.bytes

    @classmethod
    def of(cls, code: Code) -> Self:
        """Return the layout of an existing code."""
        first, *rest = (
            TensorSpec(tuple(tensor.shape), tensor.dtype)
            for tensor in (code.values, *code.side)
        )
        return cls(first, tuple(rest))

    def __str__(self) -> str:
        return " with ".join(map(str, (self.values, *self.side)))

    def fits(self, code: Code) -> bool:
        """Return whether ``code`` has this layout."""
        return self.allows(Layout.of(code))

    def allows(self, claimed: "Layout") -> bool:
        """Return whether a code of the ``claimed`` layout would fit."""
        if self.values != claimed.values or len(self.side) != len(claimed.side):
            return False
        return all(map(TensorSpec.allows, self.side, claimed.side))

    def check(self, code: Code) -> None:
        """Raise CodecError unless ``code`` has this layout."""
        if not self.fits(code):
            raise CodecError(f"expected a code of {self}, got {Layout.of(code)}")


class Encoder(nn.Module):
    """Turns a batch of activations into a code. Its weights belong to the sender."""

    def forward(self, activation: Tensor) -> Code:
        """Return the code of ``activation`` (B, *shape)."""
        raise NotImplementedError

    def coded(self, activation: Tensor) -> "Coded":
        """Return the code, with the numbers that it was rounded from."""
        code: Code = self(activation)
        return Coded(code.values, code)


class Coded(NamedTuple):
    """A code, and its latent: the same numbers before a codec rounded them."""

    latent: Tensor
    code: Code


class Decoder(nn.Module):
    """Turns a code into a batch of activations. Its weights belong to the receiver."""

    def forward(self, code: Code) -> Tensor:
        """Return (B, *shape) for ``code``."""
        raise NotImplementedError


class Codec:
    """A pair of encoder and decoder for activations of one shape.

    Attributes:
        name: the registered name.
        facts: what a user should know before choosing it.
        shape: shape of one activation, without the batch.
        code_size: differentiable values per sample.
        has_trained_lift: whether the server learns how to lift a code back.
        packed_bits: bits per sample of a code that the codec packs itself, at most; 0
            where the wire format writes its numbers.
        is_sent: whether codes are sent at all.
        is_trained_before: whether a run leaves the codec as it was trained before, so
            that no gradient comes back to it.
        files: options that name a file. Each end has it where it likes: the fingerprint
            says what is in it.
        needs_map: whether it codes one feature map (C, H, W), and so no several tensors
            that were joined to a row of numbers.
        fingerprint: SHA-256 of everything drawn from a seed, empty if nothing is drawn;
            both sides compare it before the first step.
    """

    name: str
    facts: ClassVar[PartFacts] = PartFacts()
    encoder: Encoder
    decoder: Decoder
    fingerprint: str = ""
    packed_bits: int = 0
    is_sent: ClassVar[bool] = True
    is_trained_before: ClassVar[bool] = False
    files: ClassVar[frozenset[str]] = frozenset()
    needs_map: ClassVar[bool] = False
    has_trained_lift: bool = False

    def __new__(cls, *_: object, **options: object) -> Self:
        """Refuse options that the codec does not have, before it is built."""
        _check_names(cls, options)
        return super().__new__(cls)

    def __init__(self, shape: tuple[int, ...], code_size: int) -> None:
        self.shape = tuple(shape)
        self.code_size = code_size

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        if "ratio" in options:
            check_ratio(options["ratio"])

    @property
    def activation_size(self) -> int:
        """The number of values in one activation (d)."""
        return math.prod(self.shape)

    @property
    def ratio(self) -> float:
        """The realised ratio d / k."""
        return self.activation_size / self.code_size

    @property
    def is_sample_wise(self) -> bool:
        """Return whether row i of a code depends on sample i alone."""
        return True

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        return Layout(TensorSpec((batch_size, self.code_size)))

    def pack(self, code: Code) -> Code:
        """Return a code as it travels; most codecs leave that to the wire format."""
        return code

    def unpack(self, packed: Code) -> Code:
        """Return the code that ``pack`` was given."""
        return packed

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout of the packed code of ``batch_size`` samples."""
        return self.layout(batch_size)

    def packed_samples(self, packed: Tensor) -> int:
        """Return how many samples the values of a packed code hold."""
        return packed.shape[0]

    def samples(self, code: Code) -> int:
        """Return how many samples a code is of."""
        return len(code.values)

    def rows(self, code: Code) -> Tensor:
        """Return a code as one tensor with a row per sample.

        A code with side information (such as the places of kept values) is decoded, as
        by its receiver, and so is a code of a whole batch.
        """
        if code.side or not self.is_sample_wise:
            decoded: Tensor = self.decoder(code)
            return decoded
        return code.values

    def gradient_layout(self, values: TensorSpec) -> Layout:
        """Return the layout of the encoded gradient at a code's ``values``."""
        return Layout(values)

    def encode_gradient(self, gradient: Tensor) -> Code:
        """Return the gradient as it is sent back; most codecs send it unchanged."""
        return Code(gradient)

    def decode_gradient(self, code: Code) -> Tensor:
        """Return the gradient that ``encode_gradient`` was given."""
        return code.values


CODECS: Registry[Codec] = Registry("codec", "lightsplit.codecs")


def refuse_joined(name: str, tensors: Sequence[str]) -> None:
    """Raise ConfigError if the codec cannot carry several tensors, which are named."""
    if len(tensors) > 1 and getattr(CODECS.get(name), "needs_map", False):
        raise ConfigError(
            f"{name} codes one feature map, and {len(tensors)} tensors cross the front "
            f"cut: {', '.join(tensors)}; choose another codec, or cut where one crosses"
        )


def reduced_size(size: int, ratio: float) -> int:
    """Return k = floor(size / ratio); refuse a ratio that leaves no value.

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
    """Raise ConfigError unless ``ratio`` is at least 1."""
    if not ratio >= 1:
        raise ConfigError(f"ratio must be at least 1, got {ratio}")


def size_of(shape: tuple[int, ...]) -> int:
    """Return the number of values in one activation; refuse an invalid ``shape``."""
    if not shape or not all(isinstance(n, int) and n >= 1 for n in shape):
        raise ConfigError(f"shape must be positive integers, got {shape!r}")
    return math.prod(shape)


def check_rows(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise CodecError unless every sample of ``tensor`` has this ``shape``."""
    if tensor.ndim == 0 or tuple(tensor.shape[1:]) != shape:
        expected = ", ".join(map(str, ("batch", *shape)))
        raise CodecError(f"expected ({expected}), got {tuple(tensor.shape)}")


def _check_names(codec: type[Codec], options: Iterable[str]) -> None:
    _, *parameters = inspect.signature(codec.__init__).parameters
    known = sorted(parameters)
    for option in options:
        if option not in known:
            raise ConfigError(unknown_name(f"{codec.name} option", option, known))
