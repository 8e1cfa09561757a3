"""BottleNet++: convolutions to few channels and back, through a noisy channel.

    activation ──[level]──Conv3×3──BatchNorm──sigmoid──► channel ──►    at the client
    ──Conv3×3──BatchNorm──ReLU──► activation                            at the server

    channel   none       values as they are
              awgn       Gaussian noise of standard deviation s on each value
              erasure    8 bits per value, each read as 0 with probability s

With ``halve`` the convolutions also halve height and width (2×2, stride 2), and the
server's are transposed. With a channel, a constant map tells the encoder its level s:
drawn evenly from 0 to ``level`` for each batch of training, ``level`` in prediction.
Our network loses nothing, so the client plays the channel, from its secret; the
gradient passes it unchanged.

Shao, Zhang: BottleNet++: an end-to-end approach for feature compression in device-edge
co-inference systems, ICC workshops 2020. There the codec is trained in phases behind a
trained network; here all parts train together.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_ratio,
    check_rows,
    size_of,
)
from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts

_HIGHEST = 255
_BITS = 8


@CODECS.register("bottlenet")
class BottleNet(Codec):
    """Trained convolutions to few channels and back, through a noisy channel.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut, as near as the channels allow; default: 8.
        seed: not used; weights and noise come from torch's generator.
        channel: none (default), awgn or erasure.
        level: noise, or probability of an erasure, of the channel; default: 0.1.
        halve: whether height and width are halved too.
    """

    name = "bottlenet"
    needs_map = True
    facts = PartFacts(
        source="Shao, Zhang, ICC workshops 2020 (BottleNet++)",
        assumes="an activation (C, H, W) behind a ReLU",
        client_cost="9Cc' weights, 9HWCc' multiplications",
        attacker="trains a decoder; expectation over the channel's noise",
        status="adapted",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,  # noqa: ARG002  weights come from torch's generator
        *,
        channel: Literal["none", "awgn", "erasure"] = "none",
        level: float = 0.1,
        halve: bool = False,
    ) -> None:
        self.check_options({"ratio": ratio, "channel": channel, "level": level})
        self.code_shape = _code_shape(tuple(shape), ratio, halve=halve)
        super().__init__(shape, size_of(self.code_shape))
        self.is_written_as_bytes = channel == "erasure"
        self.packed_bits = _BITS * self.code_size if self.is_written_as_bytes else 0
        played = Channel(channel, level)
        self.encoder = ChannelEncoder(self.shape, self.code_shape, played, halve=halve)
        self.decoder = ChannelDecoder(self.shape, self.code_shape, halve=halve)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        check_ratio(options.get("ratio", 1))
        level = options.get("level", 0.1)
        is_erasure = options.get("channel") == "erasure"
        if not (level > 0 and (level < 1 or not is_erasure)):
            raise ConfigError(
                "bottlenet needs a level above 0, and below 1 for erasures, got "
                f"{level}"
            )

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        return Layout(TensorSpec((batch_size, *self.code_shape)))

    def packed_layout(self, batch_size: int) -> Layout:
        """Return the layout on the wire: a byte for each value behind erasures."""
        plain = self.layout(batch_size)
        if not self.is_written_as_bytes:
            return plain
        return Layout(TensorSpec(plain.values.shape, torch.uint8))

    def pack(self, code: Code) -> Code:
        """Return the values behind erasures as bytes, others as they are."""
        if not self.is_written_as_bytes:
            return code
        return Code((code.values * _HIGHEST).round().to(torch.uint8))

    def unpack(self, packed: Code) -> Code:
        """Return the values."""
        if not self.is_written_as_bytes:
            return packed
        return Code(packed.values.float() / _HIGHEST)


class Channel:
    """Changes values from 0 to 1 on their way.

    Args:
        kind: none, awgn or erasure.
        level: the highest noise or probability.
    """

    def __init__(self, kind: str, level: float) -> None:
        self.kind = kind
        self.level = level

    @property
    def is_noisy(self) -> bool:
        """Whether the encoder is told a level."""
        return self.kind != "none"

    def draw_level(self, like: Tensor, *, is_training: bool) -> Tensor:
        """Return the level of one batch."""
        if not is_training:
            return like.new_tensor(self.level)
        return self.level * torch.rand((), dtype=like.dtype, device=like.device)

    def passed(self, values: Tensor, level: Tensor) -> Tensor:
        """Return the values as they arrive; the gradient is that of the values."""
        if self.kind == "awgn":
            return values + level * torch.randn_like(values.detach())
        if self.kind == "none":
            return values
        whole = (values.detach() * _HIGHEST).round().long()
        arrives = torch.rand(*whole.shape, _BITS, device=whole.device) >= level
        places = torch.arange(_BITS, device=whole.device)
        mask = (arrives.long() << places).sum(dim=-1)
        arrived = (whole & mask).to(values.dtype) / _HIGHEST
        # Their difference is zero, but has the gradient.
        return arrived + (values - values.detach())


class ChannelEncoder(Encoder):
    """Convolves to few channels, and sends the result through the channel."""

    def __init__(
        self,
        shape: tuple[int, ...],
        code_shape: tuple[int, ...],
        channel: Channel,
        *,
        halve: bool,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.channel = channel
        inputs = shape[0] + int(channel.is_noisy)
        size, stride, padding = (2, 2, 0) if halve else (3, 1, 1)
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, code_shape[0], size, stride, padding),
            nn.BatchNorm2d(code_shape[0]),
            nn.Sigmoid(),
        )

    def forward(self, activation: Tensor) -> Code:
        """Return the values as they arrive."""
        check_rows(activation, self.shape)
        level = self.channel.draw_level(activation, is_training=self.training)
        if self.channel.is_noisy:
            told = level.expand_as(activation[:, :1])
            activation = torch.cat([activation, told], dim=1)
        return Code(self.channel.passed(self.layers(activation), level))


class ChannelDecoder(Decoder):
    """Convolves back to all channels."""

    def __init__(
        self, shape: tuple[int, ...], code_shape: tuple[int, ...], *, halve: bool
    ) -> None:
        super().__init__()
        self.code_shape = code_shape
        back: nn.Module = nn.Conv2d(code_shape[0], shape[0], 3, padding=1)
        if halve:
            back = nn.ConvTranspose2d(code_shape[0], shape[0], 2, 2)
        self.layers = nn.Sequential(back, nn.BatchNorm2d(shape[0]), nn.ReLU())

    def forward(self, code: Code) -> Tensor:
        """Return all channels."""
        check_rows(code.values, self.code_shape)
        lifted: Tensor = self.layers(code.values)
        return lifted.clone()  # a backbone may change it, and ReLU needs its own result


def _code_shape(
    shape: tuple[int, ...], ratio: float, *, halve: bool
) -> tuple[int, ...]:
    size_of(shape)
    if len(shape) != 3:
        raise ConfigError(f"bottlenet needs a shape (C, H, W), got {shape!r}")
    channels, height, width = shape
    if not halve:
        return max(1, math.floor(channels / ratio)), height, width
    if height % 2 or width % 2:
        raise ConfigError(
            f"bottlenet halves an even height and width, got {height} and {width}"
        )
    return max(1, math.floor(4 * channels / ratio)), height // 2, width // 2
