"""How often cosine-to-consensus flags somebody although nobody is malicious.

"3 sigma" is not 0.3 %: with few clients the median and the MAD are rough, and a cosine
to the consensus has one long tail. So the rate is simulated: the clients' vectors are
one common direction plus noise in ``DIMENSIONS`` independent directions, which is what
means over batches of the same distribution look like; the fewer directions, the longer
the tail. A rate is that of a whole verdict: at least one honest client is flagged.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

DIMENSIONS = 16
NOISE = 0.05  # of the common direction's length; the rate hardly depends on it
TRIALS = 2000
MINIMUM = 3  # fewer clients have no consensus to depart from
_SPREAD = 1e-12  # cosines of equal vectors differ by rounding alone

Floats = NDArray[np.float64]


def cosine_scores(vectors: Floats, *, consensus: str, sides: str) -> Floats:
    """Return how far each client's cosine to the consensus lies from the others'.

    Args:
        vectors: (…, clients, values).
        consensus: ``mean`` of all clients, or ``median`` of all the others.
        sides: ``two`` tails, or ``one``: only clients that are less like the others.

    Returns:
        Robust z-scores (…, clients): 0 for all where there are fewer than three clients
        or nothing to tell them apart by.
    """
    if vectors.shape[-2] < MINIMUM:
        return np.zeros(vectors.shape[:-1])
    z = robust_z(_cosines(vectors, _consensus(vectors, consensus)))
    return np.abs(z) if sides == "two" else np.maximum(-z, 0)


def robust_z(values: Floats) -> Floats:
    """Return (value - median) / (1.4826 MAD) along the last axis.

    Where more than half of the values agree the MAD is 0, and 1.2533 times the mean
    absolute deviation takes its place; where all agree every score is 0.
    """
    deviations = values - np.median(values, axis=-1, keepdims=True)
    sizes = np.abs(deviations)
    median = 1.4826 * np.median(sizes, axis=-1, keepdims=True)
    mean = 1.2533 * np.mean(sizes, axis=-1, keepdims=True)
    scale = np.where(median > _SPREAD, median, mean)
    is_spread = scale > _SPREAD
    return np.where(is_spread, deviations / np.where(is_spread, scale, 1), 0)


@cache
def false_alarm_rate(
    threshold: float, *, clients: int, consensus: str, sides: str
) -> float:
    """Return the share of honest verdicts with a score above ``threshold``."""
    highest = _highest_scores(clients, consensus, sides)
    return float((highest > threshold).mean())


@cache
def threshold_for(rate: float, *, clients: int, consensus: str, sides: str) -> float:
    """Return the threshold that ``rate`` of the honest verdicts exceed."""
    if not 0 < rate < 1:
        raise ConfigError(f"false_alarm_rate must be between 0 and 1, got {rate}")
    return float(np.quantile(_highest_scores(clients, consensus, sides), 1 - rate))


@cache
def _highest_scores(clients: int, consensus: str, sides: str) -> Floats:
    generator = numpy_generator(0, "calibration", clients)
    vectors = NOISE * generator.standard_normal((TRIALS, clients, DIMENSIONS))
    vectors[..., 0] += 1
    scores = cosine_scores(vectors, consensus=consensus, sides=sides)
    highest: Floats = scores.max(axis=-1)
    return highest


def _consensus(vectors: Floats, kind: str) -> Floats:
    if kind == "mean":
        mean: Floats = vectors.mean(axis=-2, keepdims=True)
        return mean
    others = [
        np.median(np.delete(vectors, client, axis=-2), axis=-2)
        for client in range(vectors.shape[-2])
    ]
    return np.stack(others, axis=-2)


def _cosines(vectors: Floats, consensus: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(consensus, axis=-1)
    products: Floats = (vectors * consensus).sum(axis=-1)
    cosines: Floats = np.divide(
        products, lengths, out=np.zeros_like(products), where=lengths > 0
    )
    return cosines
