"""Robust scores of how far each client's cosine to the consensus is from the others'.

vectors ──cos──► consensus ──► (value − median) / (1.4826 MAD)
"""

import numpy as np
from numpy.typing import NDArray

MINIMUM = 3  # fewer clients have no consensus to deviate from
_SPREAD = 1e-12  # cosines of equal vectors differ only by rounding

Floats = NDArray[np.float64]


def cosine_scores(vectors: Floats, *, consensus: str, sides: str) -> Floats:
    """Return how far each client's cosine to the consensus is from the others'.

    Args:
        vectors: (…, clients, values).
        consensus: ``mean`` of all clients, or ``median`` of all the others.
        sides: ``two`` tails, or ``one``: only clients that are less like the others.

    Returns:
        Robust z-scores (…, clients); all are 0 if there are fewer than three clients or
        if the clients do not differ.
    """
    if vectors.shape[-2] < MINIMUM:
        return np.zeros(vectors.shape[:-1])
    z = robust_z(_cosines(vectors, _consensus(vectors, consensus)))
    return np.abs(z) if sides == "two" else np.maximum(-z, 0)


def robust_z(values: Floats) -> Floats:
    """Return (value - median) / (1.4826 MAD) along the last axis.

    If more than half of the values agree, the MAD is 0, and 1.2533 times the mean
    absolute deviation replaces it; if all agree, every score is 0.
    """
    deviations = values - np.median(values, axis=-1, keepdims=True)
    sizes = np.abs(deviations)
    median = 1.4826 * np.median(sizes, axis=-1, keepdims=True)
    mean = 1.2533 * np.mean(sizes, axis=-1, keepdims=True)
    scale = np.where(median > _SPREAD, median, mean)
    is_spread = scale > _SPREAD
    return np.where(is_spread, deviations / np.where(is_spread, scale, 1), 0)


def _consensus(vectors: Floats, kind: str) -> Floats:
    if kind == "mean":
        mean: Floats = vectors.mean(axis=-2, keepdims=True)
        return mean
    return median_of_others(vectors)


def median_of_others(vectors: Floats) -> Floats:
    """Return, for each client, the median of all other clients, value by value.

    With the values sorted, the others' median is the value at its place, or the next
    one for the lower half, where the client itself is missing.
    """
    clients = vectors.shape[-2]
    ordered = np.sort(vectors, axis=-2)
    ranks = vectors.argsort(axis=-2).argsort(axis=-2)

    def others_at(place: int) -> Floats:
        here, above = ordered[..., [place], :], ordered[..., [place + 1], :]
        return np.where(ranks > place, here, above)

    lower, upper = others_at((clients - 2) // 2), others_at((clients - 1) // 2)
    median: Floats = (lower + upper) / 2
    return median


def _cosines(vectors: Floats, consensus: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(consensus, axis=-1)
    products: Floats = (vectors * consensus).sum(axis=-1)
    cosines: Floats = np.divide(
        products, lengths, out=np.zeros_like(products), where=lengths > 0
    )
    return cosines
