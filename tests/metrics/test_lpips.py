"""LPIPS against a derivation in NumPy and against torchmetrics' own network."""

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors
from torch import nn

from lightsplit.errors import ConfigError
from lightsplit.metrics import learned_perceptual_similarity

pytestmark = pytest.mark.data


def windows(maps, size, stride, padding):
    """Return all windows (C, rows, columns, size, size) of maps (C, H, W)."""
    edges = ((0, 0), (padding, padding), (padding, padding))
    every = sliding_window_view(np.pad(maps, edges), (size, size), axis=(1, 2))
    return every[:, ::stride, ::stride]


def convolved(maps, parameters, number, stride, padding):
    kernel = parameters[f"features.{number}.weight"].astype(np.float64)
    seen = windows(maps, kernel.shape[-1], stride, padding)
    sums = np.einsum("crsij,ocij->ors", seen, kernel, optimize=True)
    bias = parameters[f"features.{number}.bias"].astype(np.float64)
    return np.maximum(sums + bias[:, None, None], 0)


def pooled(maps):
    return windows(maps, 3, 2, 0).max(axis=(3, 4))


def alexnet(image, parameters):
    """Return the five maps of an image (3, H, W) in [0, 1], by the published layers."""
    # ImageNet's means and deviations for [0, 1], as LPIPS rounds them for [-1, 1].
    mean = (np.array([-0.030, -0.088, -0.188]) + 1) / 2
    deviation = np.array([0.458, 0.448, 0.450]) / 2
    maps = (image - mean[:, None, None]) / deviation[:, None, None]
    first = convolved(maps, parameters, 0, stride=4, padding=2)
    second = convolved(pooled(first), parameters, 3, stride=1, padding=2)
    third = convolved(pooled(second), parameters, 6, stride=1, padding=1)
    fourth = convolved(third, parameters, 8, stride=1, padding=1)
    return first, second, third, fourth, convolved(fourth, parameters, 10, 1, 1)


def derived(guess, original, folder):
    features = load_file(folder / "alexnet-features.safetensors")
    heads = load_file(folder / "lpips-alex-heads.safetensors")
    total = 0.0
    pairs = zip(alexnet(guess, features), alexnet(original, features), strict=True)
    for layer, maps in enumerate(pairs):
        unit = [each / np.maximum(np.linalg.norm(each, axis=0), 1e-12) for each in maps]
        head = heads[f"lin{layer}.model.1.weight"].reshape(-1, 1, 1)
        total += ((unit[0] - unit[1]) ** 2 * head).sum(axis=0).mean()
    return total


def stretched(line, size):
    """Return the last axis resampled linearly, pixels taken as areas."""
    place = (np.arange(size) + 0.5) * line.shape[-1] / size - 0.5
    place = place.clip(0, line.shape[-1] - 1)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, line.shape[-1] - 1)
    return line[..., low] * (1 - (place - low)) + line[..., high] * (place - low)


@pytest.mark.parametrize("shape", [(64, 64), (70, 95)])
def test_it_equals_a_numpy_computation_with_the_weights(shape, weights):
    guesses, originals = torch.rand(2, 2, 3, *shape)
    values = learned_perceptual_similarity(guesses, originals, weights=weights)
    expected = [
        derived(guess.double().numpy(), original.double().numpy(), weights)
        for guess, original in zip(guesses, originals, strict=True)
    ]
    assert values.tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (5, 80)])
def test_small_grey_images_are_coloured_and_stretched_to_64(shape, weights):
    guess, original = torch.rand(2, 1, *shape)
    value = learned_perceptual_similarity(guess[None], original[None], weights=weights)
    large = []
    for image in (guess, original):
        wide = stretched(image.double().numpy(), max(shape[1], 64))
        tall = stretched(wide.swapaxes(1, 2), max(shape[0], 64)).swapaxes(1, 2)
        large.append(np.repeat(tall, 3, axis=0))
    assert value.item() == pytest.approx(derived(*large, weights), rel=1e-4)


def bare_alexnet(folder):
    """Return AlexNet's feature layers, which torchmetrics asks torchvision for."""
    layers = nn.Sequential(
        *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
    )
    state = load_tensors(folder / "alexnet-features.safetensors")
    layers.load_state_dict({k.removeprefix("features."): v for k, v in state.items()})
    return layers


def test_it_is_that_of_torchmetrics_with_the_same_backbone(monkeypatch, weights):
    from torchmetrics.functional.image import lpips as theirs

    monkeypatch.setattr(
        theirs, "_get_tv_model_features", lambda net, pretrained: bare_alexnet(weights)
    )
    network = theirs._NoTrainLpips(net="alex")  # its own heads, not ours
    guesses, originals = torch.rand(2, 5, 3, 64, 64)
    values = learned_perceptual_similarity(guesses, originals, weights=weights)
    expected = network(guesses, originals, normalize=True).flatten()
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-6)


def test_equal_images_are_at_0_and_black_ones_too(weights, digits):
    score = learned_perceptual_similarity
    assert (score(digits, digits, weights=weights) == 0).all()
    black = torch.zeros(1, 3, 32, 32)
    assert score(black, black, weights=weights).item() == 0


def test_it_is_symmetric_and_grows_with_noise(weights, digits):
    images, noise = digits[:16], torch.randn(16, 1, 8, 8)
    noisy = [(images + s * noise).clamp(0, 1) for s in (0.02, 0.1, 0.3, 1.0)]
    values = [learned_perceptual_similarity(n, images, weights=weights) for n in noisy]
    means = [value.mean().item() for value in values]
    assert means == sorted(means)
    assert means[-1] > 5 * means[0] > 0
    back = learned_perceptual_similarity(images, noisy[1], weights=weights)
    torch.testing.assert_close(back, values[1])


def test_no_gradient_flows(weights):
    guess = torch.rand(1, 1, 8, 8, requires_grad=True)
    value = learned_perceptual_similarity(
        guess, torch.rand(1, 1, 8, 8), weights=weights
    )
    assert not value.requires_grad


def test_more_images_than_pass_at_once_get_the_same_values(weights):
    guesses, originals = torch.rand(2, 70, 1, 8, 8)
    values = learned_perceptual_similarity(guesses, originals, weights=weights)
    last = learned_perceptual_similarity(guesses[66:], originals[66:], weights=weights)
    torch.testing.assert_close(values[66:], last)


def test_two_channels_are_refused(weights):
    images = torch.rand(1, 2, 8, 8)
    with pytest.raises(ConfigError, match=r"one or three channels, got 2"):
        learned_perceptual_similarity(images, images, weights=weights)
