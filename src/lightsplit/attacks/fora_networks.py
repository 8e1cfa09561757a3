"""The networks of FORA for features (C, H, W) of images in [-1, 1].

    substitute   64 · C · pool                     not the victim's architecture
    critic       strided to 4x4x256 · 6 residual blocks · 256/2 ─► one value
    decoder      up 256 · image                    two more layers, 128 and 64, that
                                                   double, for smaller features

These are the networks of the released level 2, and the critics and decoders of levels 3
and 4. Features as large as the image are neither pooled nor doubled. For features of
less than half the image's size the substitute has one more layer and one more pooling
for each halving; that is our addition.
"""

import math

from torch import Tensor, nn

from lightsplit.errors import AuditError

SLOPE = 0.2
DECODER_WIDTHS = (256, 128, 64)
CRITIC_WIDTH = 256


def halvings(features: tuple[int, ...], image: tuple[int, ...]) -> int:
    """Return how often an image's size is halved in its features."""
    if len(features) == 3 and len(image) == 3:
        times = math.log2(image[1] / features[1])
        is_square = image[1] * features[2] == image[2] * features[1]
        if is_square and times in range(len(DECODER_WIDTHS) + 1):
            return int(times)
    raise AuditError(
        "fora's decoder doubles features up to three times to an image's size: "
        f"expected (channels, {', '.join(map(str, image[1:]))}), or a half, a quarter "
        f"or an eighth of it, got {features}; choose an earlier cut"
    )


def make_substitute(features: tuple[int, ...], image: tuple[int, ...]) -> nn.Sequential:
    """Return a network from images to features of the victim's shape."""
    layers = [*_normalised(image[0], 64), *_normalised(64, features[0])]
    for number in range(halvings(features, image)):
        if number:
            layers += _normalised(features[0], features[0])
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def make_critic(features: tuple[int, ...], width: int = CRITIC_WIDTH) -> nn.Sequential:
    """Return a network from features to one value each, without normalisation."""
    channels, height, columns = features
    strided = max(0, math.ceil(math.log2(min(height, columns) / 4)))
    widths = [width // 2**power for power in range(max(0, strided - 1), -1, -1)]
    stride = 2 if strided else 1
    layers: list[nn.Module] = []
    for number, outputs in enumerate(widths):
        layers += [ConstantSlopes()] if number else []
        layers.append(nn.Conv2d(channels, outputs, 3, stride=stride, padding=1))
        channels = outputs
    layers += [Residual(width) for _ in range(6)]
    layers.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
    pixels = math.prod(math.ceil(n / 2 ** (strided + 1)) for n in (height, columns))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width * pixels, 1))


def make_decoder(features: tuple[int, ...], image: tuple[int, ...]) -> nn.Sequential:
    """Return a network from features to images in [-1, 1]."""
    channels, times = features[0], halvings(features, image)
    layers: list[nn.Module] = []
    for number, outputs in enumerate(DECODER_WIDTHS[: max(1, times)]):
        doubles = number < times
        layers += [
            nn.ConvTranspose2d(
                channels,
                outputs,
                3,
                stride=2 if doubles else 1,
                padding=1,
                output_padding=1 if doubles else 0,
            ),
            nn.BatchNorm2d(outputs),
            nn.LeakyReLU(SLOPE),
        ]
        channels = outputs
    layers += [
        nn.Conv2d(channels, image[0], 3, padding=1),
        nn.BatchNorm2d(image[0]),
        nn.Tanh(),
    ]
    return nn.Sequential(*layers)


class ConstantSlopes(nn.Module):
    """A ReLU for a critic whose slope is differentiated.

    Its second derivative is 0. PyTorch's own ReLU returns zeros for it and sends them
    back through the whole critic. Here the mask does not depend on the input, as far as
    autograd knows, so nothing is sent back.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Return max(inputs, 0)."""
        return inputs * (inputs > 0)


class Residual(nn.Module):
    """Two convolutions after their ReLUs, added to their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            ConstantSlopes(),
            nn.Conv2d(channels, channels, 3, padding=1),
            ConstantSlopes(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return inputs + residual."""
        total: Tensor = inputs + self.layers(inputs)
        return total


def _normalised(channels_in: int, channels: int) -> list[nn.Module]:
    return [
        nn.Conv2d(channels_in, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    ]
