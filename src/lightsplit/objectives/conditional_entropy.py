"""Conditional entropy: a budget for what a code says beyond the class.

    relu(Ĥ(b | y) − B)      Ĥ(b | y) = Σ_y share(y) Σ_j h₂(p_j|y)   in bits

p_j|y is a running mean, over the samples of class y, of a steep sigmoid of the latent:
nearly the share of ones among the j-th bits. For hard bits, Ĥ bounds the information
about the sample that a code carries beyond its label. Once Ĥ is within the budget B,
the term is 0 and pulls at nothing.
"""

import torch
from torch import Tensor

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.bits import (
    binary_entropy,
    check_bits,
    check_classes,
    one_hot,
)
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("conditional-entropy")
class ConditionalEntropy(Objective):
    """Keeps what the bits say beyond the class within a budget.

    Args:
        codec: the codec of the front cut.
        classes: number of classes.
        budget: bits per sample that cost nothing; default: 3.
        steepness: factor of the latent in the sigmoid; default: 4.
        memory: share of the running mean that each batch keeps; default: 0.9.
        after: steps before the term counts; default: 0.
    """

    name = "conditional-entropy"
    facts = PartFacts(
        source="LightSplit",
        assumes="codes of bits; labels that are classes",
        client_cost="k sigmoids per sample",
        attacker="trains a decoder on bits",
        status="ours",
    )
    ones: Tensor
    seen: Tensor
    steps: Tensor

    def __init__(
        self,
        codec: Codec,
        classes: int | None,
        *,
        budget: float = 3.0,
        steepness: float = 4.0,
        memory: float = 0.9,
        after: int = 0,
    ) -> None:
        super().__init__()
        check_bits(self.name, codec)
        if not (budget >= 0 and steepness > 0 and 0 <= memory < 1 and after >= 0):
            raise ConfigError(
                "conditional-entropy needs a budget of 0 or more, a steepness above 0, "
                f"a memory from 0 to below 1 and after of 0 or more, got {budget}, "
                f"{steepness}, {memory} and {after}"
            )
        self.classes = check_classes(self.name, classes)
        self.budget = budget
        self.steepness = steepness
        self.memory = memory
        self.after = after
        self.register_buffer("ones", torch.full((self.classes, codec.code_size), 0.5))
        self.register_buffer("seen", torch.zeros(self.classes, dtype=torch.int64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, view: ClientView) -> Tensor:
        """Return by how many bits the entropy of the codes exceeds the budget."""
        member = one_hot(view.labels, self.classes)  # (B, classes)
        counts = member.sum(0)
        smooth = (self.steepness * view.latent).sigmoid()
        means = (member.T @ smooth) / counts.clamp(min=1).unsqueeze(1)
        ones = self._remembered(means, counts)
        entropy = (counts / counts.sum()) @ binary_entropy(ones).sum(1)
        excess = (entropy - self.budget).relu()
        is_early = bool(self.steps < self.after)
        if self.training:
            self._remember(ones, counts)
        return excess * 0 if is_early else excess

    def _remembered(self, means: Tensor, counts: Tensor) -> Tensor:
        """Return the running means with this batch, which has the gradient."""
        kept = self.memory * (self.seen > 0).to(means.dtype).unsqueeze(1)
        mixed = kept * self.ones + (1 - kept) * means
        return torch.where((counts > 0).unsqueeze(1), mixed, self.ones)

    @torch.no_grad()
    def _remember(self, ones: Tensor, counts: Tensor) -> None:
        self.ones.copy_(ones)
        self.seen.add_(counts.long())
        self.steps.add_(1)
