"""Pixel metrics against torchmetrics, scikit-image and SciPy, and their laws."""

import math

import numpy as np
import pytest
import skimage.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lightsplit.metrics import (
    correlation,
    mean_squared_error,
    peak_signal_noise_ratio,
    scaled_mean_squared_error,
)

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 7, 40)]
laws = settings(max_examples=40, deadline=None)


@st.composite
def pairs(draw):
    """Reconstructions and originals; some of both may be flat."""
    count, channels = draw(st.integers(1, 4)), draw(st.sampled_from([1, 3]))
    sides = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    images = torch.rand(2, count, channels, *sides, generator=generator)
    images[draw(st.integers(0, 1)), 0] *= draw(st.sampled_from([0.0, 1e-3, 1.0]))
    return images[0], images[1]


@pytest.mark.parametrize("shape", SHAPES)
def test_psnr_is_that_of_torchmetrics_and_of_scikit_image(shape):
    from torchmetrics.functional.image import peak_signal_noise_ratio as reference

    guesses, originals = torch.rand(2, 5, *shape)
    values = peak_signal_noise_ratio(guesses, originals)
    theirs = reference(
        guesses, originals, data_range=1.0, reduction="none", dim=(1, 2, 3)
    )
    torch.testing.assert_close(values, theirs)
    for value, guess, original in zip(values, guesses, originals, strict=True):
        third = skimage.metrics.peak_signal_noise_ratio(
            original.numpy(), guess.numpy(), data_range=1
        )
        assert value.item() == pytest.approx(third, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_scale_free_metrics_are_those_of_a_linear_regression(shape):
    guesses, originals = torch.rand(2, 5, *shape, dtype=torch.float64)
    for index in range(5):
        x, y = guesses[index].flatten().numpy(), originals[index].flatten().numpy()
        line = stats.linregress(x, y)
        left = np.mean((line.slope * x + line.intercept - y) ** 2)
        assert correlation(guesses, originals)[index] == pytest.approx(line.rvalue)
        assert scaled_mean_squared_error(guesses, originals)[index] == pytest.approx(
            left
        )


@laws
@given(pairs())
def test_psnr_is_the_squared_error_in_decibels(pair):
    for error, ratio in zip(
        mean_squared_error(*pair), peak_signal_noise_ratio(*pair), strict=True
    ):
        assert ratio.item() == pytest.approx(-10 * math.log10(error), rel=1e-4)


@laws
@given(pairs())
def test_equal_images_have_no_error_and_the_highest_ratio(pair):
    image = pair[0]
    assert (mean_squared_error(image, image) == 0).all()
    assert (peak_signal_noise_ratio(image, image) == 100).all()
    assert scaled_mean_squared_error(image, image).max() <= 1e-9


@laws
@given(pairs())
def test_the_errors_are_symmetric(pair):
    guess, truth = pair
    for metric in (mean_squared_error, peak_signal_noise_ratio, correlation):
        assert torch.equal(metric(guess, truth), metric(truth, guess))


@laws
@given(pairs(), st.floats(0.1, 10), st.floats(-3, 3))
def test_brightness_and_contrast_do_not_change_the_scale_free_metrics(pair, a, b):
    guess, truth = (side.double() for side in pair)
    for metric in (correlation, scaled_mean_squared_error):
        torch.testing.assert_close(
            metric(a * guess + b, truth), metric(guess, truth), rtol=1e-6, atol=1e-6
        )


@laws
@given(pairs())
def test_a_negative_turns_correlation_round_and_leaves_scaled_mse(pair):
    guess, truth = (side.double() for side in pair)
    torch.testing.assert_close(
        correlation(1 - guess, truth), -correlation(guess, truth), rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        scaled_mean_squared_error(1 - guess, truth),
        scaled_mean_squared_error(guess, truth),
        rtol=0,
        atol=1e-6,
    )


@laws
@given(pairs())
def test_rescaling_never_makes_the_error_larger(pair):
    assert (scaled_mean_squared_error(*pair) <= mean_squared_error(*pair) + 1e-7).all()


@laws
@given(pairs(), st.floats(0, 1))
def test_a_flat_image_has_correlation_0_and_leaves_the_variance(pair, level):
    truth = pair[1]
    flat = torch.full_like(truth, level)
    assert (correlation(flat, truth) == 0).all()
    assert (correlation(truth, flat) == 0).all()
    variance = truth.flatten(1).var(1, correction=0)
    torch.testing.assert_close(scaled_mean_squared_error(flat, truth), variance)
