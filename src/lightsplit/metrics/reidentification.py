"""Re-identification: whether a reconstruction points to its own original.

    reconstruction i ──► nearest of the N originals ──► is it original i? 1 or 0

The mean over images is the top-1 rate at which somebody who holds the N originals could
tell which one was sent; guessing gives 1/N. A reconstruction that only shows the class
scores close to that. Fewer images make it easier, so a figure always states its N.

The distance is the mean squared error. A tie counts as a hit, because identical images
give each other away too.
"""

import torch
from torch import Tensor

from lightsplit.metrics.base import checked_pair, checked_rows, scored_as

CHUNK = 256  # reconstructions compared with all originals at a time


@scored_as(
    "reidentification",
    higher_is_better=True,
    span=(0.0, 1.0),
    is_proportion=True,
    needs_all_images=True,
    kinds=("image", "table"),
)
def reidentification(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return 1 for each image or row whose own original is the nearest, else 0."""
    check = checked_rows if originals.ndim == 2 else checked_pair
    reconstructions, originals = check(reconstructions, originals)
    guesses, truths = reconstructions.flatten(1), originals.flatten(1)
    nearest = _nearest(guesses, truths)
    own = torch.arange(len(truths), device=truths.device)
    # The products below are rounded, so compare nearest and own original exactly.
    is_hit = _distances(guesses, truths, own) <= _distances(guesses, truths, nearest)
    return is_hit.to(originals.dtype)


def _nearest(guesses: Tensor, truths: Tensor) -> Tensor:
    """Return the index of the nearest truth for each guess.

    ‖g − t‖² = ‖g‖² − 2 g·t + ‖t‖², of which the first term is the same for all t.
    """
    half_squares = torch.linalg.vector_norm(truths, dim=1).square() / 2
    chunks = torch.split(guesses, CHUNK)
    # (chunk, N) at a time
    return torch.cat([(half_squares - chunk @ truths.T).argmin(1) for chunk in chunks])


def _distances(guesses: Tensor, truths: Tensor, indices: Tensor) -> Tensor:
    """Return the squared distance from each guess to the truth with its index."""
    parts = zip(torch.split(guesses, CHUNK), torch.split(indices, CHUNK), strict=True)
    gaps = ((guess.double() - truths[index].double()) for guess, index in parts)
    return torch.cat([gap.square().sum(1) for gap in gaps])
