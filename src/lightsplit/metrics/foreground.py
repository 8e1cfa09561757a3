"""Metrics of an image's foreground, without its dark background.

    original ──> 0.1──► mask ──► mse_foreground, psnr_foreground: pixels of the mask
                        └─ tight box ──► ssim_crop, lpips_crop: both images cut to it

Most of an MNIST image is black, so an all-black guess looks good over the whole image.
A pixel is foreground, in all its channels, if any channel of the *original* is brighter
than 0.1. An image without such a pixel is scored as a whole.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from lightsplit.metrics.base import checked_pair, scored_as
from lightsplit.metrics.lpips import learned_perceptual_similarity, stretched
from lightsplit.metrics.pixels import HIGHEST_DECIBELS, decibels
from lightsplit.metrics.ssim import structural_similarity

THRESHOLD = 0.1
Score = Callable[[Tensor, Tensor], Tensor]


@scored_as("mse_foreground", higher_is_better=False, span=(0.0, 1.0))
def foreground_mean_squared_error(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the mean squared difference over the foreground of each image."""
    reconstructions, originals = checked_pair(reconstructions, originals)
    mask = foreground(originals)
    error = (reconstructions - originals).square().mean(1, keepdim=True)
    return (error * mask).flatten(1).sum(1) / mask.flatten(1).sum(1)


@scored_as(
    "psnr_foreground", higher_is_better=True, span=(0.0, HIGHEST_DECIBELS), unit="dB"
)
def foreground_peak_signal_noise_ratio(
    reconstructions: Tensor, originals: Tensor
) -> Tensor:
    """Return the foreground's mean squared error in decibels, 100 at most."""
    return decibels(foreground_mean_squared_error(reconstructions, originals))


@scored_as("ssim_crop", higher_is_better=True, span=(-1.0, 1.0))
def cropped_structural_similarity(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the structural similarity inside the tight box of each foreground."""
    reconstructions, originals = checked_pair(reconstructions, originals)
    mask = foreground(originals)
    guesses, truths = (
        list(_crops(side, mask)) for side in (reconstructions, originals)
    )
    return _by_shape(structural_similarity, guesses, truths)


@scored_as(
    "lpips_crop", higher_is_better=False, span=(0.0, torch.inf), needs_weights=True
)
def cropped_perceptual_similarity(
    reconstructions: Tensor, originals: Tensor, *, weights: Path
) -> Tensor:
    """Return LPIPS inside the tight box of each foreground."""
    reconstructions, originals = checked_pair(reconstructions, originals)
    mask = foreground(originals)
    guesses, truths = (
        [stretched(crop) for crop in _crops(side, mask)]
        for side in (reconstructions, originals)
    )
    score = partial(learned_perceptual_similarity, weights=weights)
    return _by_shape(score, guesses, truths)


def foreground(originals: Tensor) -> Tensor:
    """Return the mask (N, 1, H, W): True where an original is brighter than 0.1."""
    mask = (originals > THRESHOLD).any(1, keepdim=True)
    is_empty = ~mask.flatten(1).any(1)
    return mask | is_empty.view(-1, 1, 1, 1)


def _crops(images: Tensor, mask: Tensor) -> Iterator[Tensor]:
    """Yield each image (1, C, h, w) cut to the tight box of its mask."""
    for image, places in zip(images, mask[:, 0], strict=True):
        yield image[None, :, _span(places.any(1)), _span(places.any(0))]


def _by_shape(score: Score, guesses: list[Tensor], truths: list[Tensor]) -> Tensor:
    """Return ``score`` of images of any size, with one batch per shape."""
    groups = defaultdict(list)
    for index, truth in enumerate(truths):
        groups[truth.shape].append(index)
    values = truths[0].new_empty(len(truths))
    for indices in groups.values():
        batches = (torch.cat([side[i] for i in indices]) for side in (guesses, truths))
        values[indices] = score(*batches)
    return values


def _span(is_hit: Tensor) -> slice:
    """Return the slice from the first True to the last."""
    places = is_hit.nonzero()
    return slice(int(places[0]), int(places[-1]) + 1)
