"""Re-identification: does a reconstruction point at its own original?

    reconstruction i ──► nearest of the N originals ──► is it original i? 1 or 0

The mean over images is the top-1 rate at which somebody who holds the N originals could
say which one was sent; guessing gives 1/N. A reconstruction that only shows the class
scores near that. It grows easier with fewer images, so a figure always names its N.

Nearest is by mean squared error. A tie is a hit: twins give each other away as well.
"""

import torch
from torch import Tensor

from lightsplit.metrics.base import checked_pair, scored_as

CHUNK = 512  # reconstructions compared with all originals at a time


@scored_as(
    "reidentification",
    higher_is_better=True,
    span=(0.0, 1.0),
    is_proportion=True,
    needs_all_images=True,
)
def reidentification(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return 1 for each image to which no other original is nearer than its own."""
    reconstructions, originals = checked_pair(reconstructions, originals)
    guesses, truths = reconstructions.flatten(1), originals.flatten(1)
    rivals = _nearest_others(guesses, truths)
    # Products tell who the nearest rival is; who wins is settled without rounding.
    own = _distances(guesses, truths, torch.arange(len(truths), device=truths.device))
    return (own <= _distances(guesses, truths, rivals)).to(originals.dtype)


def _nearest_others(guesses: Tensor, truths: Tensor) -> Tensor:
    """Return for each guess the index of the nearest truth that is not its own.

    ‖g − t‖² = ‖g‖² − 2 g·t + ‖t‖², of which the first term is the same for all t.
    """
    half_squares = torch.linalg.vector_norm(truths, dim=1).square() / 2
    nearest = []
    for start in range(0, len(guesses), CHUNK):
        chunk = guesses[start : start + CHUNK]
        gaps = torch.addmm(half_squares, chunk, truths.T, alpha=-1)  # (chunk, N)
        gaps.diagonal(start).fill_(torch.inf)
        nearest.append(gaps.argmin(1))
    return torch.cat(nearest)


def _distances(guesses: Tensor, truths: Tensor, indices: Tensor) -> Tensor:
    """Return the squared distance of each guess to the truth with its index."""
    parts = zip(torch.split(guesses, CHUNK), torch.split(indices, CHUNK), strict=True)
    gaps = ((guess.double() - truths[index].double()) for guess, index in parts)
    return torch.cat([gap.square().sum(1) for gap in gaps])
