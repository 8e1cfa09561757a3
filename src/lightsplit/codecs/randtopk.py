"""Randomised top-k: in training, a few of the k values come from outside the top k.

    in training     k places without replacement    (1 − α)/k each in the top k
                                                    α/(d − k) each elsewhere
    in prediction   the top k

Without the random share, values that start small are never sent, get no gradient and
stay small. Values are not rescaled. The client's secret seeds the draws. Wire and bytes
are those of ``topk``.

Zheng, Chen, Lyu, Yao: Reducing communication for split learning by randomized top-k
sparsification, IJCAI 2023.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lightsplit.codecs.base import CODECS
from lightsplit.codecs.topk import SparseEncoder, TopK
from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts


@CODECS.register("randtopk")
class RandomTopK(TopK):
    """Top-k that in training keeps a few random values instead of the k-th largest.

    Args:
        shape: shape of one activation.
        ratio: d / k at the cut; default: 8.
        seed: not used; the draws come from the client's secret.
        random_share: probability α that a drawn place lies outside the top k; default:
            0.1.
    """

    name = "randtopk"
    facts = PartFacts(
        source="Zheng et al., IJCAI 2023",
        assumes="large values matter most",
        client_cost="a random draw of k places in training; coding them",
        attacker="as for topk: prediction is not random",
        status="faithful",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        ratio: float = 8.0,
        seed: int = 0,
        *,
        random_share: float = 0.1,
    ) -> None:
        super().__init__(shape, ratio, seed)
        _check_share(random_share)
        self.encoder = RandomEncoder(self.shape, self.code_size, random_share)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ConfigError if an option is out of range, before the codec is built."""
        super().check_options(options)
        _check_share(options.get("random_share", 0.1))


class RandomEncoder(SparseEncoder):
    """Draws the places in training, and picks the largest values otherwise."""

    def __init__(
        self, shape: tuple[int, ...], code_size: int, random_share: float
    ) -> None:
        super().__init__(shape, code_size)
        self.random_share = random_share

    def choose(self, magnitudes: Tensor) -> Tensor:
        """Return the places (B, k) to keep, in any order, given magnitudes (B, d)."""
        largest = super().choose(magnitudes)
        others = magnitudes.shape[1] - self.code_size
        if not self.training or not others:
            return largest
        elsewhere = self.random_share / others
        odds = torch.full_like(magnitudes, elsewhere)
        odds.scatter_(1, largest, (1 - self.random_share) / self.code_size)
        return torch.multinomial(odds, self.code_size)


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise ConfigError(f"random_share must be between 0 and 1, got {share}")
