"""What a client makes of a batch before it sends anything."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from lightsplit.codecs import Code


class Encoded(NamedTuple):
    """What the head and the encoder made of a batch.

    Attributes:
        activation: the head's output.
        latent: the code before the codec rounded it.
        code: the code.
        sent: the code as it is sent, which an objective may disturb.
        uncover: undoes at the output what an objective did to the activation.
    """

    activation: Tensor
    latent: Tensor
    code: Code
    sent: Code
    uncover: Callable[[Tensor], Tensor] | None = None

    def undone(self, output: Tensor) -> Tensor:
        """Return an output as the tail takes it."""
        return output if self.uncover is None else self.uncover(output)
