"""The inverse network of He et al.: transposed convolutions from features to an image.

    features (C, h, w) ─► doubled, ReLU │ … ─► one layer to the image's own size

Each layer mirrors one of the head's, as released: 3x3 with stride 2 for a pooling, 3x3
where the size stays, and a wider kernel without padding for a convolution that had
none. A code that is not a map first goes through the attacker's own linear lift.
"""

from torch import Tensor, nn

from lightsplit.attacks.lifts import learned_lift, lifted
from lightsplit.codecs import Codec
from lightsplit.errors import AuditError

WIDTHS = (128, 64)  # of the layers that double; the last one has 64
MOST_DOUBLINGS = 4


def doublings(name: str, features: tuple[int, ...], image: tuple[int, ...]) -> int:
    """Return how often features can double before they exceed the image."""
    is_map = len(features) == 3 and len(image) == 3
    if not is_map or features[1] > image[1] or features[2] > image[2]:
        raise AuditError(
            f"{name} inverts features (channels, height, width) no larger than the "
            f"image {image[1:]}, got {features}; choose an earlier cut"
        )
    times = 0
    while all(
        side * 2 ** (times + 1) <= whole
        for side, whole in zip(features[1:], image[1:], strict=True)
    ):
        times += 1
    return min(times, MOST_DOUBLINGS)


def inverse_network(
    name: str, features: tuple[int, ...], image: tuple[int, ...]
) -> nn.Sequential:
    """Return a network from features to images, without an activation at its end."""
    channels, times = features[0], doublings(name, features, image)
    layers: list[nn.Module] = []
    for number in range(times):
        width = WIDTHS[-1] if number == times - 1 else WIDTHS[0]
        layers += [
            nn.ConvTranspose2d(
                channels, width, 3, stride=2, padding=1, output_padding=1
            ),
            nn.ReLU(),
        ]
        channels = width
    rows, columns = (
        whole - side * 2**times
        for whole, side in zip(image[1:], features[1:], strict=True)
    )
    return nn.Sequential(*layers, _to_size(channels, image[0], rows, columns))


def _to_size(channels: int, outputs: int, rows: int, columns: int) -> nn.Module:
    """Return the last layer, which adds this many rows and columns."""
    kernel = (rows + 1 if rows else 3, columns + 1 if columns else 3)
    padding = (0 if rows else 1, 0 if columns else 1)
    return nn.ConvTranspose2d(channels, outputs, kernel, padding=padding)


class CodeInverter(nn.Module):
    """An inverse network behind a lift of codes: R's own, or one that it learns."""

    def __init__(
        self, name: str, codec: Codec, image: tuple[int, ...], *, learns_lift: bool
    ) -> None:
        super().__init__()
        self.lift = learned_lift(codec) if learns_lift else None
        self.network = inverse_network(name, codec.shape, image)
        self._codec = codec if self.lift is None else None

    def forward(self, codes: Tensor) -> Tensor:
        """Return an image for every code."""
        images: Tensor = self.network(self.enter(codes))
        return images

    def enter(self, codes: Tensor) -> Tensor:
        """Return codes in the form that the network takes."""
        if self.lift is not None:
            activations: Tensor = self.lift(codes)
            return activations
        assert self._codec is not None  # noqa: S101 (either one or the other)
        return lifted(codes, self._codec)
