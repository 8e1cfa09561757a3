"""The attacker's own client, for attackers who do not know the head's layers.

image ─► conv, norm, ReLU │ conv, norm, ReLU, pooled to the cut's size ─► codec
"""

from torch import Tensor, nn

from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.view import readable
from lightsplit.codecs import Code, Codec, size_of

GRID = 4  # pixels a side that are left of an image before a flat activation


class PseudoClient(ClientCopy):
    """The attacker's own head and the codec's encoder, with its own weights."""

    def __init__(self, head: nn.Module, codec: Codec, received: nn.Module) -> None:
        super().__init__()
        self.head = head
        self.encoder = codec.encoder
        self.received = received
        self._codec = codec

    def activations(self, samples: Tensor) -> Tensor:
        """Return the head's output for images."""
        found: Tensor = self.head(samples)
        return found

    def encode(self, samples: Tensor) -> Code:
        """Return the code of images in the form that the server's network takes."""
        values, side = self.encoder(self.activations(samples))
        return Code(self.received(values), side)

    def forward(self, samples: Tensor) -> Tensor:
        """Return one readable code per image."""
        return readable(self._codec, self.encode(samples))


def make_pseudo_head(
    image: tuple[int, ...], features: tuple[int, ...], width: int
) -> nn.Sequential:
    """Return a plain network from images to activations of any shape."""
    if len(features) == 3:
        return nn.Sequential(
            *_layer(image[0], width),
            *_layer(width, features[0]),
            nn.AdaptiveMaxPool2d(features[1:]),
        )
    return nn.Sequential(
        *_layer(image[0], width),
        nn.AdaptiveMaxPool2d(GRID),
        nn.Flatten(),
        nn.Linear(width * GRID**2, size_of(features)),
        nn.Unflatten(1, features),
    )


def _layer(inputs: int, outputs: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]
