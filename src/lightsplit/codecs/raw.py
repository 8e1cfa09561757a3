"""No codec: the activation itself crosses the cut.

activation (B, *shape) ──► values (B, *shape) ──► the same
"""

from collections.abc import Mapping
from typing import Any

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
from lightsplit.part_facts import PartFacts


@CODECS.register("raw")
class Raw(Codec):
    """Sends the activation as it is; every other codec is measured against this.

    Args:
        shape: shape of one activation.
        ratio: must be 1.
        seed: not used.
    """

    name = "raw"
    facts = PartFacts(
        source="Gupta, Raskar, JNCA 2018: split learning as first published",
        assumes="nothing",
        client_cost="nothing beyond the head",
        attacker="trains a decoder on codes as they are",
        status="faithful",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 1.0,
        seed: int = 0,  # noqa: ARG002  every codec takes a seed, this one draws nothing
    ) -> None:
        self.check_options({"ratio": ratio})
        super().__init__(shape, size_of(tuple(shape)))
        self.encoder = RawEncoder(self.shape)
        self.decoder = RawDecoder(self.shape)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError unless the ratio is 1."""
        ratio = options.get("ratio", 1)
        if ratio != 1:
            raise ConfigError(f"raw does not compress: ratio must be 1, got {ratio}")

    def layout(self, batch_size: int) -> Layout:
        """Return the layout of the code of ``batch_size`` samples."""
        return Layout(TensorSpec((batch_size, *self.shape)))


class RawEncoder(Encoder):
    """Passes activations on after checking their shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, activation: Tensor) -> Code:
        """Return ``activation`` as a code."""
        check_rows(activation, self.shape)
        return Code(activation)


class RawDecoder(Decoder):
    """Passes values on after checking their shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, code: Code) -> Tensor:
        """Return a copy of the values."""
        check_rows(code.values, self.shape)
        # Received values are a leaf of autograd, and a backbone that starts with an
        # in-place operation (ReLU(inplace=True)) may not change a leaf, hence a copy.
        return code.values.clone()
