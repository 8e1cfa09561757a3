"""Marvell: the noise that makes the gradients of two classes look most alike.

    class 0: N(μ₀, u I)  + noise  a₀ along Δ = μ₁ − μ₀, b₀ across it
    class 1: N(μ₁, v I)  + noise  a₁ along Δ,           b₁ across it

Of all such noise of a given power, the one that minimises the divergence of the two
classes, KL(0‖1) + KL(1‖0). The power grows until the divergence is so low that no
attacker can tell the classes with an error below ``error``: the error of any test is at
least 1/2 − √divergence / 4. (Li et al., ICLR 2022; for two classes only.)

Where we differ: they solve the minimisation case by case, we search. Across Δ it is
only worth raising the smaller of the two variances, so two numbers are left: that rise,
and how the rest of the power is divided along Δ. A grid around the best point so far is
narrowed until nothing changes. If a batch has one class only, the other one's mean is
taken to lie opposite, as in cross-entropy.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.protections.base import LABEL_PROTECTIONS, LabelProtection

GRID = 33  # points on each axis
ZOOMS = 12
GROWTH = 1.5  # of the power, until the divergence is low enough
MOST_GROWTHS = 60


class Classes(NamedTuple):
    """Two classes of gradients: their spread, distance, size and share.

    Attributes:
        variances: of a coordinate, in class 0 and in class 1.
        distance: ‖Δ‖².
        size: coordinates of a gradient.
        share: of class 1.
    """

    variances: tuple[float, float]
    distance: float
    size: int
    share: float


class Noise(NamedTuple):
    """Variances of the noise, in class 0 and class 1, and the divergence with it."""

    along: tuple[float, float]
    across: tuple[float, float]
    divergence: float


@LABEL_PROTECTIONS.register("marvell")
class Marvell(LabelProtection):
    """Adds the noise that hides a binary label best for its power.

    Args:
        error: that every attacker on a single gradient has at least, below 0.5.
        power: of the noise at first, in ‖Δ‖²; it grows as far as needed.
    """

    name = "marvell"
    facts = PartFacts(
        source="Li et al., ICLR 2022",
        assumes="two classes, whose gradients are about normal",
        client_cost="a search for the best noise in every step, and accuracy",
        attacker="reads the noisy gradients with known labels (label-known)",
        status="adapted",
    )

    def __init__(self, *, classes: int, error: float = 0.4, power: float = 1.0) -> None:
        super().__init__(classes=classes)
        if classes != 2:
            raise ConfigError(
                f"marvell is for two classes and this task has {classes}: use "
                "label-dp, mean-alignment, gradient-projection or max-norm"
            )
        if not 0 <= error < 0.5 or power <= 0:
            raise ConfigError(
                "marvell needs an error from 0 to below 0.5 and a power above 0, "
                f"got {error:g} and {power:g}"
            )
        self.error = error
        self.power = power

    def protect(self, gradient: Tensor, labels: Tensor) -> Tensor:
        """Return every gradient with the noise of its class."""
        gap, found = described(gradient, labels)
        if not found.distance:
            return gradient
        noise = quiet_enough(found, self.power, (2 - 4 * self.error) ** 2)
        across = gradient.new_tensor(noise.across)[labels].sqrt()[:, None]
        extra = gradient.new_tensor(noise.along) - gradient.new_tensor(noise.across)
        along = extra.clamp_min(0)[labels].sqrt()[:, None]
        direction = gap / found.distance**0.5
        size = torch.randn_like(gradient[:, :1])
        sent: Tensor = gradient + along * size * direction
        return sent + across * torch.randn_like(gradient)


def described(gradient: Tensor, labels: Tensor) -> tuple[Tensor, Classes]:
    """Return Δ and the two classes of a batch."""
    rows = gradient.double()
    parts = [rows[labels == label] for label in (0, 1)]
    means = [part.mean(dim=0) for part in parts]
    for own, other in ((0, 1), (1, 0)):
        if not len(parts[own]):
            means[own] = -means[other]
    spread = [
        float((part - mean).square().mean()) if len(part) else None
        for part, mean in zip(parts, means, strict=True)
    ]
    known = [value for value in spread if value is not None]
    variances = tuple(known[0] if value is None else value for value in spread)
    gap = means[1] - means[0]
    found = Classes(
        (variances[0], variances[1]),
        float(gap.square().sum()),
        rows.shape[1],
        float((labels == 1).double().mean()) if all(map(len, parts)) else 0.5,
    )
    return gap.to(gradient), found


def quiet_enough(classes: Classes, power: float, wanted: float) -> Noise:
    """Return the best noise whose divergence is at most ``wanted``."""
    for _ in range(MOST_GROWTHS):
        noise = best_noise(classes, power * classes.distance)
        if noise.divergence <= wanted:
            break
        power *= GROWTH
    return noise


def best_noise(classes: Classes, power: float) -> Noise:
    """Return the noise of the given power with the lowest divergence."""
    gap = abs(classes.variances[0] - classes.variances[1])
    low = torch.zeros(2, dtype=torch.float64)
    high = torch.tensor([gap, 1.0], dtype=torch.float64)
    best = low
    for _ in range(ZOOMS):
        rise, share = torch.meshgrid(
            _axis(low, high, 0), _axis(low, high, 1), indexing="ij"
        )
        lowest = int(_divergence(classes, power, rise, share)[0].argmin())
        best = torch.stack([rise.flatten()[lowest], share.flatten()[lowest]])
        step = (high - low) / (GRID - 1)
        limits = torch.tensor([gap, 1.0], dtype=torch.float64)
        low = (best - step).clamp_min(0)
        high = torch.minimum(best + step, limits)
    value, along, across = _divergence(classes, power, best[0], best[1])
    return Noise(
        (float(along[0]), float(along[1])),
        (float(across[0]), float(across[1])),
        float(value),
    )


def _axis(low: Tensor, high: Tensor, number: int) -> Tensor:
    ends = float(low[number]), float(high[number])
    return torch.linspace(*ends, GRID, dtype=torch.float64)


def _divergence(
    classes: Classes, power: float, rise: Tensor, share: Tensor
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Return the divergence, and the noise along Δ and across it, at grid points.

    Args:
        classes: the two classes.
        power: of the noise, on average over both classes.
        rise: of the smaller variance across Δ.
        share: of the rest of the power that class 1 gets, along Δ.
    """
    u, v = classes.variances
    weights = (1 - classes.share, classes.share)
    smaller = 0 if u <= v else 1
    across = [rise if label == smaller else 0 * rise for label in (0, 1)]
    # Noise is at least as strong along Δ as across it.
    rest = power - classes.size * weights[smaller] * rise
    parts = ((1 - share) * rest, share * rest)
    along = [
        across[label] + parts[label] / max(weights[label], 1e-12) for label in (0, 1)
    ]
    a, b = along[0] + u, along[1] + v
    c, d = across[0] + u, across[1] + v
    g = classes.distance
    tiny = 1e-300
    value = 0.5 * (
        (classes.size - 1) * (_ratio(c, d) + _ratio(d, c))
        + (a + g) / b.clamp_min(tiny)
        + (b + g) / a.clamp_min(tiny)
    )
    value = value - classes.size
    return torch.where(rest >= 0, value, torch.inf), along, across


def _ratio(some: Tensor, other: Tensor) -> Tensor:
    """Return a quotient; that of nothing and nothing is 1."""
    is_nothing = (some == 0) & (other == 0)
    return torch.where(is_nothing, 1.0, some / other.clamp_min(1e-300))
