"""Structural similarity against scikit-image, at every size an image may have."""

import pytest
import skimage.metrics
import torch

from lightsplit.metrics import structural_similarity


def by_scikit_image(guess, original, sigma=1.5):
    return skimage.metrics.structural_similarity(
        original.numpy(),
        guess.numpy(),
        channel_axis=0,
        data_range=1,
        gaussian_weights=True,
        sigma=sigma,
        use_sample_covariance=False,
    )


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 11, 11), (3, 12, 40)])
def test_it_is_that_of_scikit_image(shape):
    originals = torch.rand(4, *shape, dtype=torch.float64)
    guesses = (originals + 0.2 * torch.randn(4, *shape)).clamp(0, 1)
    values = structural_similarity(guesses, originals)
    for value, guess, original in zip(values, guesses, originals, strict=True):
        assert value.item() == pytest.approx(by_scikit_image(guess, original), abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "window"),
    [((1, 10, 30), 9), ((1, 8, 8), 7), ((3, 6, 7), 5), ((1, 3, 4), 3)],
)
def test_small_images_get_the_largest_odd_window_that_fits(shape, window):
    originals = torch.rand(4, *shape, dtype=torch.float64)
    guesses = torch.rand(4, *shape, dtype=torch.float64)
    values = structural_similarity(guesses, originals)
    for value, guess, original in zip(values, guesses, originals, strict=True):
        theirs = by_scikit_image(guess, original, sigma=1.5 * window / 11)
        assert value.item() == pytest.approx(theirs, abs=1e-9)


def test_a_window_of_one_pixel_compares_brightness():
    value = structural_similarity(torch.full((1, 1, 1, 9), 0.2), torch.ones(1, 1, 1, 9))
    assert value.item() == pytest.approx((2 * 0.2 + 1e-4) / (0.04 + 1 + 1e-4))


def test_an_image_is_wholly_like_itself(digits):
    torch.testing.assert_close(structural_similarity(digits, digits), torch.ones(64))


def test_a_negative_is_less_like_an_image_than_grey_is(digits):
    negative = structural_similarity(1 - digits, digits)
    grey = structural_similarity(torch.full_like(digits, 0.5), digits)
    assert negative.mean() < 0 < grey.mean()
