"""LightSplit-L: a fixed orthonormal projection, lifted back by a small trained network.

    activation ──flatten──Rᵀ──► values (B, k)
    values ──Linear(k, m)──BatchNorm──ReLU──Linear(m, d)──reshape──► (B, *shape)

The paper's equation writes no biases, its parameter counts include them in both
layers: so do we. BatchNorm makes the decoder depend on the whole batch in training,
and torch refuses a training batch of one sample.
"""

from torch import Tensor, nn

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    check_rows,
    reduced_size,
    size_of,
)
from lightsplit.codecs.lightsplit_f import ProjectingEncoder
from lightsplit.codecs.projections import PROJECTIONS
from lightsplit.errors import ConfigError


@CODECS.register("lightsplit-l")
class LightSplitL(Codec):
    """Fixed orthonormal projection to k values, lifted back by a trained MLP."""

    name = "lightsplit-l"

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,
        *,
        projection: str = "haar",
        scale: str = "orthonormal",
        hidden: int = 128,
    ) -> None:
        size = size_of(tuple(shape))
        super().__init__(shape, reduced_size(size, ratio))
        if hidden < 1:
            raise ConfigError(f"hidden must be at least 1, got {hidden}")
        drawn = PROJECTIONS.create(
            projection, size=size, code_size=self.code_size, seed=seed, scale=scale
        )
        self.fingerprint = drawn.fingerprint
        self.encoder = ProjectingEncoder(self.shape, drawn)
        self.decoder = TrainedDecoder(self.shape, self.code_size, hidden)


class TrainedDecoder(Decoder):
    """Lifts each code by an MLP with one hidden layer of ``hidden`` values."""

    def __init__(self, shape: tuple[int, ...], code_size: int, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.code_size = code_size
        self.layers = nn.Sequential(
            nn.Linear(code_size, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, size_of(shape)),
        )

    def forward(self, code: Code) -> Tensor:
        """Return the lifted activations."""
        check_rows(code.values, (self.code_size,))
        lifted: Tensor = self.layers(code.values)
        return lifted.view(len(lifted), *self.shape)
