"""Learned 1×1: a trained convolution to fewer channels, and one back.

    activation (B, C, H, W) ──Conv1x1──► values (B, c', H, W) ──Conv1x1──► (B, C, H, W)

c' = max(1, floor(C / ratio)), so few channels cannot give every ratio: 20 channels at
ratio 8 keep 2, which is a ratio of 10. ``Codec.ratio`` is the realised one. The
encoder's weights belong to the sender and train with its part of the model.
"""

import math

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


@CODECS.register("learned-1x1")
class Learned1x1(Codec):
    """Trained 1×1 convolutions to fewer channels and back.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut, as near as the channels allow; default: 8.
        seed: not used; the weights come from torch's generator.
    """

    name = "learned-1x1"
    needs_map = True
    facts = PartFacts(
        source="the LightSplit paper's baseline",
        assumes="an activation (C, H, W)",
        client_cost="Cc' weights, HWCc' multiplications",
        attacker="trains a decoder; learns a lift of its own",
        status="faithful",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,  # noqa: ARG002  weights come from torch's generator
    ) -> None:
        check_ratio(ratio)
        if len(shape) != 3:
            raise ConfigError(f"learned-1x1 needs a shape (C, H, W), got {shape!r}")
        channels, *image = shape
        self.code_shape = (max(1, math.floor(channels / ratio)), *image)
        size_of(tuple(shape))
        super().__init__(shape, size_of(self.code_shape))
        self.encoder = ConvolvingEncoder(self.shape, self.code_shape)
        self.decoder = ConvolvingDecoder(self.shape, self.code_shape)

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        return Layout(TensorSpec((batch_size, *self.code_shape)))


class ConvolvingEncoder(Encoder):
    """Mixes the channels of each pixel into fewer channels."""

    def __init__(self, shape: tuple[int, ...], code_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        self.convolution = nn.Conv2d(shape[0], code_shape[0], kernel_size=1)

    def forward(self, activation: Tensor) -> Code:
        """Return the reduced channels as a code."""
        check_rows(activation, self.shape)
        return Code(self.convolution(activation))


class ConvolvingDecoder(Decoder):
    """Mixes the few channels of each pixel into all channels."""

    def __init__(self, shape: tuple[int, ...], code_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.code_shape = code_shape
        self.convolution = nn.Conv2d(code_shape[0], shape[0], kernel_size=1)

    def forward(self, code: Code) -> Tensor:
        """Return all channels."""
        check_rows(code.values, self.code_shape)
        lifted: Tensor = self.convolution(code.values)
        return lifted
