"""Finite scalar quantisation: a few trained values per sample, each of L levels.

    activation ──W──BatchNorm──► h (B, k) ──tanh──round──► L levels in [−1, 1]

The many-level sibling of ``lightsplit-b``. The gradient passes the rounding unchanged
and tanh by its derivative. A value takes ⌈log₂ L⌉ bits on the wire.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lightsplit.codecs.base import CODECS
from lightsplit.codecs.few_bits import (
    FewBits,
    RoundingEncoder,
    check_count,
    values_of,
)
from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts

MOST_LEVELS = 256


@CODECS.register("fsq")
class FiniteScalarQuantisation(FewBits):
    """A few trained values per sample, each rounded to one of L levels.

    Args:
        shape: shape of one activation.
        values: values per sample (per token with per_token); default: 8.
        seed: seed of a fixed lift.
        levels: levels of each value; default: 4.
        lift: how the server lifts a code: learned (default, with a hidden layer),
            linear or fixed.
        hidden: width of a learned lift; default: 512.
        per_token: code each token of a sequence (last dimension) by itself.
    """

    name = "fsq"
    facts = PartFacts(
        source="Mentzer et al., ICLR 2024",
        assumes="batches of two samples or more in training",
        client_cost="dk weights and multiplications",
        attacker="trains a decoder on levels; straight-through in its own model",
        status="adapted",
    )

    def __init__(  # noqa: PLR0913
        self,
        shape: tuple[int, ...],
        values: int = 8,
        seed: int = 0,
        *,
        levels: int = 4,
        lift: str = "learned",
        hidden: int = 512,
        per_token: bool = False,
    ) -> None:
        self.check_options({"values": values, "levels": levels})
        super().__init__(
            shape,
            seed,
            count=values,
            levels=levels,
            lift=lift,
            hidden=hidden,
            per_token=per_token,
        )
        self.encoder = LevelEncoder(self.shape, values, self.token_size, levels)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        check_count("values", options.get("values", 1))
        levels = options.get("levels", 2)
        if not 2 <= levels <= MOST_LEVELS:
            raise ConfigError(f"levels must be from 2 to {MOST_LEVELS}, got {levels}")


class LevelEncoder(RoundingEncoder):
    """Sends the level nearest to the tanh of each latent number."""

    def __init__(
        self, shape: tuple[int, ...], count: int, width: int, levels: int
    ) -> None:
        super().__init__(shape, count, width)
        self.levels = levels

    def round(self, latent: Tensor) -> Tensor:
        """Return the nearest levels; the gradient is that of tanh."""
        smooth = latent.tanh()
        whole = ((smooth.detach() + 1) * ((self.levels - 1) / 2)).round()
        nearest = values_of(whole, self.levels).to(smooth.dtype)
        return nearest + (smooth - smooth.detach())
