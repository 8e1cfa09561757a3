"""No codec: the activation itself crosses the cut.

activation (B, *shape) ──► values (B, *shape) ──► the same
"""

from torch import Tensor

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    Layout,
    TensorSpec,
    check_rows,
    size_of,
)
from lightsplit.errors import ConfigError


@CODECS.register("raw")
class Raw(Codec):
    """Sends the activation as it is; every other codec is measured against this."""

    name = "raw"

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 1.0,
        seed: int = 0,  # noqa: ARG002  every codec takes one, this draws nothing
    ) -> None:
        if ratio != 1:
            raise ConfigError(f"raw does not compress: ratio must be 1, got {ratio}")
        super().__init__(shape, size_of(tuple(shape)))
        self.encoder = RawEncoder(self.shape)
        self.decoder = RawDecoder(self.shape)

    def layout(self, batch_size: int) -> Layout:
        """Return what a batch of ``batch_size`` samples puts on the wire."""
        return Layout(TensorSpec((batch_size, *self.shape)))


class RawEncoder(Encoder):
    """Hands on activations of the right shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, activation: Tensor) -> Code:
        """Return ``activation`` as a code."""
        check_rows(activation, self.shape)
        return Code(activation)


class RawDecoder(Decoder):
    """Hands on values of the right shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, code: Code) -> Tensor:
        """Return a copy of the values."""
        check_rows(code.values, self.shape)
        # A copy, because received values are a leaf of autograd, and a backbone that
        # starts with an in-place operation (ReLU(inplace=True)) may not change a leaf.
        return code.values.clone()
