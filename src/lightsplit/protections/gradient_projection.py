"""Gradients that are made small, and noisy, in the directions that tell classes apart.

    P       projects on the span of (mean of a class − mean of all), of this batch
    sent = g − strength · P(g − mean of all)  +  noise · σ · Pn

n is normal, and σ is how far class means lie from the mean of all, in each direction of
the span on average. So what a gradient says about its class is 1 − strength times as
large as it was, beside noise of ``noise`` times its old size. All other directions stay
as they are, and gradients as useful as they were there.

``mean-alignment`` moves classes as a whole and leaves the spread within a class; here
that spread is made small as well, so it tells nothing by its shape. With a linear tail
and few classes, all that a gradient says lies in the span: strength 1 then leaves the
server nothing to learn from.

Like ProjPert (Fu et al., TKDE 2024) it projects gradients of any number of classes, and
changes nothing else. It is no copy: we do not have that paper's constraints.
"""

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.protections.base import LABEL_PROTECTIONS, LabelProtection
from lightsplit.protections.mean_alignment import class_means

_FLAT = 1e-4  # a direction of less than this share of the first is rounding


@LABEL_PROTECTIONS.register("gradient-projection")
class GradientProjection(LabelProtection):
    """Makes gradients small and noisy in the directions that tell classes apart.

    Args:
        strength: share of these directions that is removed, 0 to 1.
        noise: deviation of the noise there, in distances of class means.
    """

    name = "gradient-projection"
    facts = PartFacts(
        source="after ProjPert: Fu et al., TKDE 2024",
        assumes="several classes in a batch",
        client_cost="singular vectors of class means, noise, and accuracy",
        attacker="reads what is left with known labels (label-known)",
        status="adapted",
    )

    def __init__(
        self, *, classes: int, strength: float = 0.5, noise: float = 1.0
    ) -> None:
        super().__init__(classes=classes)
        if not 0 <= strength <= 1 or noise < 0:
            raise ConfigError(
                "gradient-projection needs a strength from 0 to 1 and a noise of 0 or "
                f"more, got {strength:g} and {noise:g}"
            )
        self.strength = strength
        self.noise = noise

    def protect(self, gradient: Tensor, labels: Tensor) -> Tensor:
        """Return every gradient, projected and disturbed."""
        centre = gradient.mean(dim=0)
        if len(torch.unique(labels)) < 2:  # the class is what all of them say
            centre = torch.zeros_like(centre)
        span, deviation = spanned(gradient - centre, labels, self.classes)
        removed = (gradient - centre) @ span.T
        drawn = self.noise * deviation * torch.randn_like(removed)
        return gradient + (drawn - self.strength * removed) @ span


def spanned(rows: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return a basis (r, d) of the classes' means, and rows' deviation by class in it.

    The basis is orthonormal; the deviation is that of a row's class mean from 0, in
    each of its r directions on average.
    """
    members = torch.bincount(labels, minlength=classes).to(rows)
    weighted = class_means(rows, labels, classes) * members.sqrt()[:, None]
    _, sizes, directions = torch.linalg.svd(weighted, full_matrices=False)
    rank = int((sizes > _FLAT * sizes[0]).sum())
    spread = torch.linalg.vector_norm(sizes[:rank])
    return directions[:rank], spread / (len(rows) * max(rank, 1)) ** 0.5
