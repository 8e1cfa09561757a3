"""The three networks of SDAR that are its own: two discriminators and a decoder.

    discriminator of activations   16x16: 64 · 128/2 · 256 · 256 · 256 · 256/2 ─► logit
                                    8x8:  128 · 256 · 256 · 256 · 256/2        ─► logit
    discriminator of images        64 · 128/2 · 128/2 · 256/2                  ─► logit
    decoder, level 4               up · 32 · 16 · 16 · 16 · image
    decoder, level 7               up · 64 · 32 · 32 · up · 32 · 16 · 16 · 16 · image

A number is a 3x3 convolution with so many outputs; /2 means stride 2. The simulator has
the architecture of the head and is not here. The authors give networks for ResNet-20
only. Any other model has the level at which ResNet-20 shrinks an image as much, and a
discriminator has as many strided layers as it takes to reach 4x4.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from torch import nn

from lightsplit.attacks.sdar_layers import Conditioned, SameConv2d
from lightsplit.errors import AuditError

SLOPE = 0.2
DROPOUT = 0.4
LEVEL_BY_HALVINGS = {0: 3, 1: 4, 2: 7}


class Cut(NamedTuple):
    """The facts that the networks depend on.

    Attributes:
        activation: its shape, channels first.
        image: the shape of an image.
        level: how many blocks of ResNet-20 the head has, or resembles.
        classes: labels that the networks are told; 0 if the server has none.
        width: channels of the discriminators' widest layers; 256 is the released one.
    """

    activation: tuple[int, int, int]
    image: tuple[int, int, int]
    level: int
    classes: int = 0
    width: int = 256


class _Layer(NamedTuple):
    channels: int
    doubles: bool = False  # nearest neighbours before a convolution, else transposed


# The layers in the decoder's order, each with the first level that has it.
_DECODER = (
    (9, _Layer(64)),
    (8, _Layer(64)),
    (7, _Layer(64, doubles=True)),
    (6, _Layer(32)),
    (5, _Layer(32)),
    (4, _Layer(32, doubles=True)),
    (3, _Layer(16)),
    (3, _Layer(16)),
    (3, _Layer(16)),
)


def make_cut(
    activation: tuple[int, ...], image: tuple[int, ...], *, classes: int = 0
) -> Cut:
    """Return the cut, at the level of ResNet-20 that shrinks an image as much."""
    if len(activation) == 3 and len(image) == 3:
        halvings = math.log2(image[1] / activation[1])
        is_square = image[1] * activation[2] == image[2] * activation[1]
        if is_square and halvings in LEVEL_BY_HALVINGS:
            level = LEVEL_BY_HALVINGS[int(halvings)]
            return Cut(_three(activation), _three(image), level, classes)
    raise AuditError(
        "sdar's decoder doubles an activation up to twice to an image's size: expected "
        f"(channels, {', '.join(map(str, image[1:]))}), or half or a quarter of it, "
        f"got {activation}; choose an earlier cut"
    )


def make_decoder(cut: Cut, lift: nn.Module | None = None) -> Conditioned:
    """Return a network from activations to images in [0, 1]."""
    layers: list[nn.Module] = []
    channels = _inputs(cut.activation[0], cut)
    for layer in [layer for level, layer in _DECODER if level <= cut.level]:
        if layer.doubles:
            layers += [
                nn.Upsample(scale_factor=2),
                SameConv2d(channels, layer.channels, 3),
            ]
        else:
            layers.append(nn.ConvTranspose2d(channels, layer.channels, 3, padding=1))
        layers += [nn.BatchNorm2d(layer.channels), nn.ReLU()]
        channels = layer.channels
    layers += [SameConv2d(channels, cut.image[0], 3), nn.Sigmoid()]
    return _conditioned(layers, cut, cut.activation, lift)


def make_activation_discriminator(
    cut: Cut, lift: nn.Module | None = None
) -> Conditioned:
    """Return a network that tells the victim's activations from the simulator's."""
    size = min(cut.activation[1:])
    strided = max(0, math.ceil(math.log2(size / 8)))
    widths = [cut.width // 2**power for power in range(strided + 1, 0, -1)]
    layers: list[nn.Module] = [
        SameConv2d(_inputs(cut.activation[0], cut), widths[0], 3),
        nn.LeakyReLU(SLOPE),
    ]
    for before, width in pairwise(widths):
        layers += _normalised(before, width, stride=2)
    for before in (widths[-1], cut.width, cut.width):
        layers += _normalised(before, cut.width)
    layers.append(SameConv2d(cut.width, cut.width, 3, stride=2))
    pixels = _halved(cut.activation[1:], strided + 1)
    return _conditioned(
        [*layers, *_verdict(cut.width * pixels)], cut, cut.activation, lift
    )


def make_image_discriminator(cut: Cut) -> Conditioned:
    """Return a network that tells images from the decoder's."""
    narrow, middle = cut.width // 4, cut.width // 2
    layers = [
        SameConv2d(_inputs(cut.image[0], cut), narrow, 3),
        nn.LeakyReLU(SLOPE),
        *_normalised(narrow, middle, stride=2),
        *_normalised(middle, middle, stride=2),
        SameConv2d(middle, cut.width, 3, stride=2),
        nn.LeakyReLU(SLOPE),
    ]
    pixels = _halved(cut.image[1:], 3)
    return _conditioned([*layers, *_verdict(cut.width * pixels)], cut, cut.image)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = shape
    return channels, height, width


def _inputs(channels: int, cut: Cut) -> int:
    return channels + 1 if cut.classes else channels


def _conditioned(
    layers: list[nn.Module],
    cut: Cut,
    shape: tuple[int, int, int],
    lift: nn.Module | None = None,
) -> Conditioned:
    return Conditioned(
        nn.Sequential(*layers), size=shape[1:], classes=cut.classes, lift=lift
    )


def _normalised(channels_in: int, channels: int, stride: int = 1) -> list[nn.Module]:
    return [
        SameConv2d(channels_in, channels, 3, stride=stride),
        nn.BatchNorm2d(channels),
        nn.LeakyReLU(SLOPE),
    ]


def _verdict(features: int) -> list[nn.Module]:
    return [nn.Flatten(), nn.Dropout(DROPOUT), nn.Linear(features, 1)]


def _halved(size: tuple[int, int], times: int) -> int:
    """Return the number of pixels after so many layers of stride 2."""
    return math.prod(math.ceil(side / 2**times) for side in size)
