"""Gradients whose classes have means that are closer to each other, with noise.

    sent = g − strength · (mean of its class − mean of all)  +  noise · σ · n

σ is the deviation of gradients within a class, n is normal. With strength 1 all classes
of a batch have the same mean gradient, so the server learns nothing that tells classes
apart by their means; less leaves more to learn from.

This follows the idea of ProjPert (Fu et al., TKDE 2024), which moves gradients as
little as possible until classes look alike. It is no copy: we do not have the paper's
optimisation.
"""

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.protections.base import LABEL_PROTECTIONS, LabelProtection


@LABEL_PROTECTIONS.register("mean-alignment")
class MeanAlignment(LabelProtection):
    """Moves the mean gradients of classes together, and adds noise.

    Args:
        strength: share of the distance to the common mean that is removed, 0 to 1.
        noise: deviation of the noise, in deviations of gradients within a class.
    """

    name = "mean-alignment"
    facts = PartFacts(
        source="after ProjPert: Fu et al., TKDE 2024",
        assumes="several classes in a batch",
        client_cost="a mean for each class, noise, and accuracy",
        attacker="reads the moved gradients with known labels (label-known)",
        status="adapted",
    )

    def __init__(
        self, *, classes: int, strength: float = 0.5, noise: float = 1.0
    ) -> None:
        super().__init__(classes=classes)
        if not 0 <= strength <= 1 or noise < 0:
            raise ConfigError(
                "mean-alignment needs a strength from 0 to 1 and a noise of 0 or more, "
                f"got {strength:g} and {noise:g}"
            )
        self.strength = strength
        self.noise = noise

    def protect(self, gradient: Tensor, labels: Tensor) -> Tensor:
        """Return every gradient, moved and disturbed."""
        means = class_means(gradient, labels, self.classes)[labels]
        deviation = (gradient - means).square().mean().sqrt()
        moved = gradient - self.strength * (means - gradient.mean(dim=0))
        return moved + self.noise * deviation * torch.randn_like(gradient)


def class_means(rows: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Return the mean row of each class (classes, d); 0 for one that is not there."""
    sums = rows.new_zeros(classes, rows.shape[1]).index_add_(0, labels, rows)
    members = torch.bincount(labels, minlength=classes).clamp_min(1)
    return sums / members.to(rows)[:, None]
