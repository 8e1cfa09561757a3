"""An output codec that sends the first values of an output."""

import torch
from torch import Tensor

from lightsplit.codecs import Code, Encoder, OutputCodec


class FirstValues(OutputCodec):
    """Sends the first values and leaves the others out."""

    name = "first-values"
    shortens = True

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        size: int | None = None,
        flip: bool = False,
        seed: int = 0,
        classes: int = 0,
    ) -> None:
        super().__init__(shape, size=size, seed=seed, classes=classes)
        self.encoder = First(self.code_size, flip=flip)

    def matrix(self) -> Tensor | None:
        """Return the map from outputs to what is sent."""
        if self.is_whole:
            return None
        return self.encoder.sign * torch.eye(self.code_size, self.activation_size)


class First(Encoder):
    """Takes the first values, perhaps with the other sign."""

    def __init__(self, size: int, *, flip: bool) -> None:
        super().__init__()
        self.size, self.sign = size, -1 if flip else 1

    def forward(self, output: Tensor) -> Code:
        """Return the code."""
        return Code(self.sign * output[:, : self.size])
