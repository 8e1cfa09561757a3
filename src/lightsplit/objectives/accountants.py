"""Accountants of differential privacy, by libraries that others have checked.

    randomised response    dp-accounting, replace-one, δ = 0
    Gaussian noise         Opacus' Rényi accountant

The server sees the code of every single sample. So sampling gains nothing: the rate is
1, and every release of a code counts.
"""

import functools
from typing import Any

from lightsplit.extras import require

PURPOSE = "differential privacy of codes (--dp)"
# Rényi orders: Opacus' own only reach 63, which is too low for strong noise.
ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(11, 64))
ORDERS += [float(round(64 * 1.1**n)) for n in range(60)]
_INTERVAL = 1e-6  # to which dp-accounting rounds losses up
TOLERANCE = 1e-3  # below the requested ε


def response_epsilon(kept: float, choices: int) -> float:
    """Return ε of randomised response that keeps the truth with this probability."""
    library: Any = require("dp_accounting", extra="dp", purpose=PURPOSE)
    replaced = (1 - kept) * choices / (choices - 1)  # by any choice, including its own
    event = library.RandomizedResponseDpEvent(replaced, choices)
    relation = library.NeighboringRelation.REPLACE_ONE
    accountant = library.pld.PLDAccountant(relation, _INTERVAL)
    return float(accountant.compose(event).get_epsilon(0.0))


@functools.cache
def noise_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """Return the least deviation, for a change of 1, that keeps (ε, δ)."""
    found = _opacus(".utils").get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=1.0,
        steps=releases,
        accountant="rdp",
        epsilon_tolerance=TOLERANCE,
        alphas=ORDERS,
    )
    return float(found)


@functools.cache
def gaussian_epsilon(multiplier: float, delta: float, releases: int) -> float:
    """Return ε of Gaussian noise of this deviation, for a change of 1."""
    accountant = _opacus().RDPAccountant()
    for _ in range(releases):
        accountant.step(noise_multiplier=multiplier, sample_rate=1.0)
    return float(accountant.get_epsilon(delta, alphas=ORDERS))


def _opacus(part: str = "") -> Any:
    return require(f"opacus.accountants{part}", extra="dp", purpose=PURPOSE)
