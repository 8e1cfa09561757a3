"""The layers of SDAR's networks, as TensorFlow builds them.

    SameConv2d    "same" padding: an even size and stride 2 pad 0 before and 1 after
    Conditioned   a label becomes one more channel of the input

PyTorch's ``padding=1`` with stride 2 pads both sides, so it looks at other pixels than
TensorFlow's "same".
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from lightsplit.attacks.memory_order import suited_to_convolutions

EMBEDDING = 50  # values per class


class SameConv2d(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) rows and columns."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the convolution of the inputs, padded as TensorFlow does it."""
        height, width = inputs.shape[-2:]
        rows = _same_padding(height, self.kernel_size[0], self.stride[0])
        columns = _same_padding(width, self.kernel_size[1], self.stride[1])
        both = rows[0], columns[0]
        if both != (rows[1], columns[1]):
            inputs, both = pad(inputs, (*columns, *rows)), (0, 0)
        return conv2d(inputs, self.weight, self.bias, self.stride, both)


class Conditioned(nn.Module):
    """A network on images or activations, with or without their labels.

    Args:
        network: takes one more channel than the input has if it is told labels.
        size: height and width of the network's input.
        classes: how many labels there are; 0 is a network without labels.
        lift: brings the input to that size.
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
        """Return the network's result for the inputs, given their labels."""
        lifted = self.lift(inputs)
        if self.plane is not None:
            lifted = torch.cat([lifted, self.plane(labels)], dim=1)
        result: Tensor = self.network(suited_to_convolutions(lifted))
        return result


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
