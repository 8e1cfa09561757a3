"""LightSplit-L: a fixed orthonormal projection, lifted back by a small trained network.

    activation ──flatten──Rᵀ──► values (B, k)
    values ──Linear(k, m)──BatchNorm──ReLU──Linear(m, d)──reshape──► (B, *shape)

The paper's equation has no biases, but its parameter counts include them in both
layers, so we have them too. In training, BatchNorm makes the decoder depend on the
whole batch, and torch refuses a training batch of one sample.
"""

from collections.abc import Mapping
from typing import Any

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
from lightsplit.codecs.projections.base import check_projection, run_projection
from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts

MOST_HIDDEN = 65_536


@CODECS.register("lightsplit-l")
class LightSplitL(Codec):
    """Fixed orthonormal projection to k values, lifted back by a trained MLP.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut; default: 8.
        seed: seed of the projection.
        projection: how R is drawn: haar, uniform or dct (no matrix); default: haar.
        scale: orthonormal (the paper's, default), or jl, which multiplies by sqrt(d/k).
        projection_seed: draw R as a run with this seed does, and everything else from
            the run's own seed; default: the run's own.
        hidden: width m of the trained lift-back; default: the task's own, or 128.
    """

    name = "lightsplit-l"
    facts = PartFacts(
        source="the LightSplit paper",
        assumes="batches of two samples or more",
        client_cost="as lightsplit-f",
        attacker="as for lightsplit-f",
        status="faithful",
    )
    has_trained_lift = True

    def __init__(  # noqa: PLR0913
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,
        *,
        projection: str = "haar",
        scale: str = "orthonormal",
        projection_seed: int | None = None,
        hidden: int = 128,
    ) -> None:
        size = size_of(tuple(shape))
        super().__init__(shape, reduced_size(size, ratio))
        _check_hidden(hidden)
        drawn = PROJECTIONS.create(
            projection,
            size=size,
            code_size=self.code_size,
            seed=seed if projection_seed is None else run_projection(projection_seed),
            scale=scale,
        )
        self.fingerprint = drawn.fingerprint
        self.encoder = ProjectingEncoder(self.shape, drawn)
        self.decoder = TrainedDecoder(self.shape, self.code_size, hidden)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        check_projection(options)
        if "hidden" in options:
            _check_hidden(options["hidden"])


class TrainedDecoder(Decoder):
    """Lifts each code with an MLP that has one hidden layer of ``hidden`` values."""

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
        return lifted.view(lifted.shape[0], *self.shape)


def _check_hidden(hidden: int) -> None:
    if not 1 <= hidden <= MOST_HIDDEN:
        raise ConfigError(f"hidden must be from 1 to {MOST_HIDDEN:,}, got {hidden}")
