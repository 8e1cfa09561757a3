"""LightSplit-F: a fixed orthonormal projection, lifted back by its transpose.

    activation (B, *shape) ──flatten──Rᵀ──► values (B, k) ──R──reshape──► (B, *shape)

Lifting gives the part of the activation that lies in span(R) and nothing else. No
side has a trainable weight here. In one process both sides hold the same R; over a
network each draws its own from the seed.
"""

from torch import Tensor

from lightsplit.codecs.base import (
    CODECS,
    Code,
    Codec,
    Decoder,
    Encoder,
    check_rows,
    reduced_size,
    size_of,
)
from lightsplit.codecs.projections import PROJECTIONS, Projection


@CODECS.register("lightsplit-f")
class LightSplitF(Codec):
    """Fixed orthonormal projection to k values, lifted back by its transpose."""

    name = "lightsplit-f"

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,
        *,
        projection: str = "haar",
        scale: str = "orthonormal",
    ) -> None:
        size = size_of(tuple(shape))
        super().__init__(shape, reduced_size(size, ratio))
        drawn = PROJECTIONS.create(
            projection, size=size, code_size=self.code_size, seed=seed, scale=scale
        )
        self.fingerprint = drawn.fingerprint
        self.encoder = ProjectingEncoder(self.shape, drawn)
        self.decoder = LiftingDecoder(self.shape, drawn)


class ProjectingEncoder(Encoder):
    """Flattens each activation and projects it."""

    def __init__(self, shape: tuple[int, ...], projection: Projection) -> None:
        super().__init__()
        self.shape = shape
        self.projection = projection

    def forward(self, activation: Tensor) -> Code:
        """Return the k coordinates of each sample."""
        check_rows(activation, self.shape)
        return Code(self.projection.project(activation.flatten(1)))


class LiftingDecoder(Decoder):
    """Lifts each code by the transpose of the projection."""

    def __init__(self, shape: tuple[int, ...], projection: Projection) -> None:
        super().__init__()
        self.shape = shape
        self.projection = projection

    def forward(self, code: Code) -> Tensor:
        """Return the lifted activations."""
        lifted = self.projection.lift(code.values)
        return lifted.view(len(lifted), *self.shape)
