"""A batch, encoded by the client but not yet sent."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from lightsplit.codecs import Code


class Encoded(NamedTuple):
    """The results of head and encoder for a batch.

    Attributes:
        activation: the head's output.
        latent: the code before the codec rounded it.
        code: the code.
        sent: the code as it is sent, which an objective may disturb.
        uncover: reverses, at the output, an objective's change to the activation.
    """

    activation: Tensor
    latent: Tensor
    code: Code
    sent: Code
    uncover: Callable[[Tensor], Tensor] | None = None

    def undone(self, output: Tensor) -> Tensor:
        """Return an output in the form that the tail takes."""
        return output if self.uncover is None else self.uncover(output)
