"""Foreground metrics against a plain loop over pixels."""

import math
from functools import partial

import pytest
import torch

from lightsplit.metrics import (
    cropped_perceptual_similarity,
    cropped_structural_similarity,
    foreground,
    foreground_mean_squared_error,
    foreground_peak_signal_noise_ratio,
    learned_perceptual_similarity,
    mean_squared_error,
    structural_similarity,
)


@pytest.fixture(params=[1, 3])
def pair(request):
    """Five images on black with a different shape in each, and noisy guesses."""
    originals = torch.zeros(5, request.param, 20, 24)
    for index in range(5):
        rows, columns = slice(2 + index, 15), slice(index, 9 + 3 * index)
        originals[index, 0, rows, columns] = torch.rand(13 - index, 9 + 2 * index)
    return torch.rand(originals.shape), originals


def looked_at(original):
    """Return the places (row, column) where any channel is brighter than 0.1."""
    _, height, width = original.shape
    return [
        (row, column)
        for row in range(height)
        for column in range(width)
        if any(channel[row, column] > 0.1 for channel in original)
    ]


def box(original):
    rows, columns = zip(*looked_at(original), strict=True)
    return slice(min(rows), max(rows) + 1), slice(min(columns), max(columns) + 1)


def test_error_and_ratio_are_those_of_a_loop_over_bright_pixels(pair):
    errors = foreground_mean_squared_error(*pair)
    ratios = foreground_peak_signal_noise_ratio(*pair)
    for guess, original, error, ratio in zip(*pair, errors, ratios, strict=True):
        terms = [
            float(guess[channel, row, column] - original[channel, row, column]) ** 2
            for row, column in looked_at(original)
            for channel in range(len(original))
        ]
        expected = sum(terms) / len(terms)
        assert error.item() == pytest.approx(expected, rel=1e-5)
        assert ratio.item() == pytest.approx(-10 * math.log10(expected), rel=1e-5)


def test_crops_are_scored_inside_the_tight_box(pair):
    values = cropped_structural_similarity(*pair)
    for guess, original, value in zip(*pair, values, strict=True):
        rows, columns = box(original)
        cut = (guess[None, :, rows, columns], original[None, :, rows, columns])
        torch.testing.assert_close(value, structural_similarity(*cut)[0])


@pytest.mark.data
def test_lpips_of_crops_is_that_of_each_crop_alone(pair, weights):
    values = cropped_perceptual_similarity(*pair, weights=weights)
    score = partial(learned_perceptual_similarity, weights=weights)
    for guess, original, value in zip(*pair, values, strict=True):
        rows, columns = box(original)
        cut = (guess[None, :, rows, columns], original[None, :, rows, columns])
        torch.testing.assert_close(value, score(*cut)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.data
def test_crops_of_large_images_keep_their_sizes(weights):
    originals = torch.zeros(2, 3, 90, 90)
    originals[0, :, :80, :70] = torch.rand(3, 80, 70)
    originals[1, :, 5:, 9:] = torch.rand(3, 85, 81)
    guesses = torch.rand(originals.shape)
    values = cropped_perceptual_similarity(guesses, originals, weights=weights)
    alone = learned_perceptual_similarity(
        guesses[1:, :, 5:, 9:], originals[1:, :, 5:, 9:], weights=weights
    )
    torch.testing.assert_close(values[1:], alone)


def test_pixels_of_the_background_do_not_count(pair):
    guesses, originals = pair
    mask = foreground(originals)
    cleaned = guesses * mask
    assert not torch.equal(cleaned, guesses)
    for metric in (foreground_mean_squared_error, foreground_peak_signal_noise_ratio):
        assert torch.equal(metric(cleaned, originals), metric(guesses, originals))


def test_exactly_a_tenth_is_background():
    original = torch.tensor([0.0, 0.1, 0.11, 1.0]).view(1, 1, 2, 2)
    assert foreground(original).flatten().tolist() == [False, False, True, True]


def test_a_dark_image_is_scored_as_a_whole():
    guesses, originals = torch.rand(3, 1, 12, 12), torch.zeros(3, 1, 12, 12)
    assert foreground(originals).all()
    torch.testing.assert_close(
        foreground_mean_squared_error(guesses, originals),
        mean_squared_error(guesses, originals),
    )
    torch.testing.assert_close(
        cropped_structural_similarity(guesses, originals),
        structural_similarity(guesses, originals),
    )


def test_a_single_bright_pixel_is_a_box_of_one():
    original = torch.zeros(1, 1, 9, 9)
    original[0, 0, 4, 7] = 1
    assert cropped_structural_similarity(original, original).item() == 1
    black = torch.zeros_like(original)
    assert foreground_mean_squared_error(black, original).item() == 1
    assert mean_squared_error(black, original).item() == pytest.approx(1 / 81)
