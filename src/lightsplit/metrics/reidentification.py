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

CHUNK = 256  # reconstructions compared with all originals at a time


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
    nearest = _nearest(guesses, truths)
    own = torch.arange(len(truths), device=truths.device)
    # The products below round: whether the nearest beats the own is settled exactly.
    is_hit = _distances(guesses, truths, own) <= _distances(guesses, truths, nearest)
    return is_hit.to(originals.dtype)


def _nearest(guesses: Tensor, truths: Tensor) -> Tensor:
    """Return for each guess the index of the nearest truth.

    ‖g − t‖² = ‖g‖² − 2 g·t + ‖t‖², of which the first term is the same for all t.
    """
    half_squares = torch.linalg.vector_norm(truths, dim=1).square() / 2
    chunks = torch.split(guesses, CHUNK)
    # (chunk, N) at a time
    return torch.cat([(half_squares - chunk @ truths.T).argmin(1) for chunk in chunks])


def _distances(guesses: Tensor, truths: Tensor, indices: Tensor) -> Tensor:
    """Return the squared distance of each guess to the truth with its index."""
    parts = zip(torch.split(guesses, CHUNK), torch.split(indices, CHUNK), strict=True)
    gaps = ((guess.double() - truths[index].double()) for guess, index in parts)
    return torch.cat([gap.square().sum(1) for gap in gaps])
