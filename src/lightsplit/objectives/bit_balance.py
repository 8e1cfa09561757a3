"""Bit balance: every bit is 0 for half of the samples and 1 for the other half.

    k − Σ_j h₂(p_j)      p_j: mean over the batch of a steep sigmoid of the latent

It is 0 when all bits are balanced, and k when all samples have the same code.
"""

from torch import Tensor

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.bits import binary_entropy, check_bits
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("bit-balance")
class BitBalance(Objective):
    """Makes each bit divide the samples into halves.

    Args:
        steepness: factor of the latent in the sigmoid; default: 4.
    """

    name = "bit-balance"
    facts = PartFacts(
        source="LightSplit; common in hashing",
        assumes="codes of bits",
        client_cost="k sigmoids per sample",
        attacker="trains a decoder on bits",
        status="ours",
    )

    def __init__(self, *, steepness: float = 4.0) -> None:
        super().__init__()
        if not steepness > 0:
            raise ConfigError(f"bit-balance needs a steepness above 0, got {steepness}")
        self.steepness = steepness

    def check(self, codec: Codec, *, has_tail: bool) -> None:  # noqa: ARG002
        """Refuse a codec whose values are not bits."""
        check_bits(self.name, codec)

    def forward(self, view: ClientView) -> Tensor:
        """Return the bits of entropy that are missing."""
        ones = (self.steepness * view.latent).sigmoid().mean(0)
        return (1 - binary_entropy(ones)).sum()
