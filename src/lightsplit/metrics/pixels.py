"""Metrics that compare an image with its original pixel by pixel.

    mse = mean of (x̂ − x)²                 psnr = −10 log₁₀ mse
    correlation = cov(x̂, x) / (σ_x̂ σ_x)    scaled_mse = min over a, b of mse(a x̂ + b, x)

Correlation and scaled_mse ignore brightness and contrast, which an attack may get wrong
while showing every detail. scaled_mse also ignores the sign: a negative of the original
scores like the original. For correlation a negative is the worst value.
"""

import math

from torch import Tensor

from lightsplit.metrics.base import checked_pair, scored_as

# One grey level of 255 off in one value of a 3 x 32 x 32 image gives 83 dB. Only images
# that are equal or nearly so reach this limit, which keeps means over images finite.
HIGHEST_DECIBELS = 100.0


@scored_as("mse", higher_is_better=False, span=(0.0, 1.0))
def mean_squared_error(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the mean squared difference of each image to its original.

    Example:
        >>> import torch
        >>> mean_squared_error(torch.full((2, 1, 4, 4), 0.5), torch.zeros(2, 1, 4, 4))
        tensor([0.2500, 0.2500])
    """
    reconstructions, originals = checked_pair(reconstructions, originals)
    return (reconstructions - originals).square().flatten(1).mean(1)


@scored_as("psnr", higher_is_better=True, span=(0.0, HIGHEST_DECIBELS), unit="dB")
def peak_signal_noise_ratio(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the ratio of 1 to the mean squared error in decibels, 100 at most."""
    return decibels(mean_squared_error(reconstructions, originals))


@scored_as("correlation", higher_is_better=True, span=(-1.0, 1.0), is_scale_free=True)
def correlation(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return Pearson's correlation over all values of each image, 0 if one is flat."""
    pair = checked_pair(reconstructions, originals)
    return _pearson(*map(_centred, pair)).to(pair[1].dtype)


@scored_as("scaled_mse", higher_is_better=False, span=(0.0, 0.25), is_scale_free=True)
def scaled_mean_squared_error(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the mean squared error after the best rescaling a x̂ + b of each image.

    Least squares leave the unexplained part of the original's variance,
    var(x) (1 − r²) with the correlation r; a flat reconstruction leaves all of it.
    """
    pair = checked_pair(reconstructions, originals)
    guess, truth = map(_centred, pair)
    unexplained = 1 - _pearson(guess, truth).square()
    return (truth.square().mean(1) * unexplained).to(pair[1].dtype)


def decibels(squared_error: Tensor) -> Tensor:
    """Return −10 log₁₀ of mean squared errors of images in [0, 1], 100 at most."""
    smallest = math.pow(10, -HIGHEST_DECIBELS / 10)
    return -10 * squared_error.clamp(min=smallest).log10()


def _centred(images: Tensor) -> Tensor:
    """Return the values of each image minus their mean, exactly 0 for a flat image."""
    flat = images.flatten(1).double()
    is_flat = flat.amax(1, keepdim=True) == flat.amin(1, keepdim=True)
    return (flat - flat.mean(1, keepdim=True)).masked_fill(is_flat, 0.0)


def _pearson(guess: Tensor, truth: Tensor) -> Tensor:
    """Return the cosine of centred rows; 0 if one of them is 0."""
    products = (guess * truth).sum(1)
    norms = (guess.square().sum(1) * truth.square().sum(1)).sqrt()
    return (products / norms.where(norms > 0, 1.0)).clamp(-1, 1)
