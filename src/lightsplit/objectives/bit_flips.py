"""Bit flips: in training, each bit is flipped with a small probability before it goes.

    sent = b · f      f_j = −1 with probability ``rate``, else 1

What a single bit says becomes unreliable, so the model learns to say the same thing in
several bits, and finer differences between samples disappear. The client's secret
seeds the flips: the server cannot take them back. In prediction nothing is flipped.
"""

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.bits import check_bits
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("bit-flips")
class BitFlips(Objective):
    """Flips bits at random in training.

    Args:
        rate: probability that a bit is flipped; default: 0.1.
    """

    name = "bit-flips"
    facts = PartFacts(
        source="LightSplit",
        assumes="codes of bits",
        client_cost="a random number for each bit",
        attacker="averages over releases of one sample",
        status="ours",
    )

    def __init__(self, *, rate: float = 0.1) -> None:
        super().__init__()
        if not 0 < rate < 0.5:
            raise ConfigError(f"bit-flips needs a rate between 0 and 0.5, got {rate}")
        self.rate = rate

    def check(self, codec: Codec, *, has_tail: bool) -> None:  # noqa: ARG002
        """Refuse a codec whose values are not bits."""
        check_bits(self.name, codec)

    def disturb(self, code: Code) -> Code:
        """Return the code with some bits flipped; in prediction the code itself."""
        if not self.training:
            return code
        flips = torch.rand_like(code.values.detach()) < self.rate
        return code._replace(values=torch.where(flips, -code.values, code.values))

    def forward(self, view: ClientView) -> Tensor:
        """Return 0: the flips themselves are all that this objective does."""
        return view.latent.new_zeros(())
