"""LightSplit-F: a fixed orthonormal projection, lifted back by its transpose.

    activation (B, *shape) ──flatten──Rᵀ──► values (B, k) ──R──reshape──► (B, *shape)

Lifting keeps the part of the activation that lies in span(R) and loses the rest.
Neither side has a trainable weight. In one process both sides hold the same R; over a
network each side draws its own from the seed.
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
    check_rows,
    reduced_size,
    size_of,
)
from lightsplit.codecs.projections import PROJECTIONS, Projection
from lightsplit.codecs.projections.base import check_projection, run_projection
from lightsplit.part_facts import PartFacts


@CODECS.register("lightsplit-f")
class LightSplitF(Codec):
    """Fixed orthonormal projection to k values, lifted back by its transpose.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut; default: 8.
        seed: seed of the projection.
        projection: how R is drawn: haar, uniform or dct (no matrix); default: haar.
        scale: orthonormal (the paper's, default), or jl, which multiplies by sqrt(d/k).
        projection_seed: draw R as a run with this seed does, and everything else from
            the run's own seed; default: the run's own.
    """

    name = "lightsplit-f"
    facts = PartFacts(
        source="the LightSplit paper",
        assumes="nothing",
        client_cost="2dk multiplications per sample; dct: d log d",
        attacker="knows R: lifts codes, or puts R into its own model",
        status="faithful",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,
        *,
        projection: str = "haar",
        scale: str = "orthonormal",
        projection_seed: int | None = None,
    ) -> None:
        size = size_of(tuple(shape))
        super().__init__(shape, reduced_size(size, ratio))
        drawn = PROJECTIONS.create(
            projection,
            size=size,
            code_size=self.code_size,
            seed=seed if projection_seed is None else run_projection(projection_seed),
            scale=scale,
        )
        self.fingerprint = drawn.fingerprint
        self.encoder = ProjectingEncoder(self.shape, drawn)
        self.decoder = LiftingDecoder(self.shape, drawn)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        check_projection(options)


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
        return lifted.view(lifted.shape[0], *self.shape)
