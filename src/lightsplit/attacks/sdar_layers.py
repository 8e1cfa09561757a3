"""What SDAR's networks are made of, as TensorFlow builds it.

    SameConv2d    "same" padding: an even size and stride 2 pad 0 before and 1 after
    Conditioned   a label becomes one more channel of the input
    LearnedLift   a code becomes an activation, by weights that start as the codec's own

PyTorch's ``padding=1`` with stride 2 looks at other pixels than TensorFlow's "same":
it pads both sides.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lightsplit.codecs import Codec
from lightsplit.codecs.lightsplit_f import ProjectingEncoder

EMBEDDING = 50  # values per class


class SameConv2d(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) rows and columns."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the convolution of the inputs, padded as TensorFlow does it."""
        height, width = inputs.shape[-2:]
        rows = _same_padding(height, self.kernel_size[0], self.stride[0])
        columns = _same_padding(width, self.kernel_size[1], self.stride[1])
        return super().forward(pad(inputs, (*columns, *rows)))


class Conditioned(nn.Module):
    """A network on images or activations that is told the labels, or is not.

    Args:
        network: takes one channel more than there are if it is told labels.
        size: height and width of what it takes.
        classes: how many labels there are; 0 is a network that is told none.
        lift: turns what comes in into what has that size.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        size: tuple[int, int],
        classes: int = 0,
        lift: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.lift = lift or nn.Identity()
        self.network = network
        self.plane = (
            nn.Sequential(
                nn.Embedding(classes, EMBEDDING),
                nn.Linear(EMBEDDING, size[0] * size[1]),
                nn.Unflatten(1, (1, *size)),
            )
            if classes
            else None
        )
        network.apply(initialise_like_keras)
        if self.plane is not None:
            self.plane.apply(initialise_like_keras)

    def forward(self, inputs: Tensor, labels: Tensor | None = None) -> Tensor:
        """Return what the network says of the inputs, given their labels."""
        lifted = self.lift(inputs)
        if self.plane is not None:
            lifted = torch.cat([lifted, self.plane(labels)], dim=1)
        result: Tensor = self.network(lifted)
        return result


class LearnedLift(nn.Module):
    """A linear map from codes (B, k) to activations that starts as the lift by R."""

    def __init__(self, start: Tensor, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(start.clone())  # (k, d)
        self.shape = shape

    def forward(self, codes: Tensor) -> Tensor:
        """Return an activation for every code."""
        return (codes @ self.weight).view(len(codes), *self.shape)


def learned_lift(codec: Codec) -> nn.Module | None:
    """Return a lift for the codec's codes that can be trained.

    None where a code is read as an activation already: raw, or with side information.
    """
    code = codec.layout(1)
    if code.side or code.values.shape[1:] == codec.shape:
        return None
    if isinstance(codec.encoder, ProjectingEncoder):
        return LearnedLift(codec.encoder.projection.matrix().T, codec.shape)
    channels = code.values.shape[1]
    return nn.Conv2d(channels, codec.shape[0], kernel_size=1)


def initialise_like_keras(module: nn.Module) -> None:
    """Draw Glorot-uniform weights, biases of 0, embeddings in ±0.05."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.uniform_(module.weight, -0.05, 0.05)


def _same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    count = -(-size // stride)
    total = max((count - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
