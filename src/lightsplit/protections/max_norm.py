"""Gradients whose lengths no longer tell the class (max norm alignment).

    sent = g · (1 + σ n)      n normal, σ² = (longest / ‖g‖)² − 1

A rare or hard class has longer gradients. Noise along the gradient itself brings every
squared length to that of the longest in the batch, on average, and turns some gradients
round. (Li et al., ICLR 2022, as their heuristic.)

What may surprise: the line on which a gradient lies stays the same. With more than two
classes each class has a line of its own, and an attacker who looks at lines, that is at
cosines without their sign, still reads the label (``label-known``).
"""

import torch
from torch import Tensor

from lightsplit.part_facts import PartFacts
from lightsplit.protections.base import LABEL_PROTECTIONS, LabelProtection


@LABEL_PROTECTIONS.register("max-norm")
class MaxNorm(LabelProtection):
    """Scales each gradient at random, so that all are equally long on average."""

    name = "max-norm"
    facts = PartFacts(
        source="Li et al., ICLR 2022",
        assumes="that gradients tell a class by their length",
        client_cost="a norm and a random number for each sample, and accuracy",
        attacker="looks at lines: at cosines without their sign (label-known)",
        status="faithful",
    )

    def protect(self, gradient: Tensor, labels: Tensor) -> Tensor:
        """Return every gradient times a random number."""
        del labels
        lengths = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        longest = lengths.max()
        spread = (longest**2 / lengths.square().clamp_min(1e-32) - 1).clamp_min(0)
        scale = 1 + spread.sqrt() * torch.randn_like(lengths)
        return torch.where(lengths > 0, gradient * scale, gradient)
