"""The catalogue of metrics, and the rules that every metric obeys."""

import pytest
import torch

from lightsplit.errors import ConfigError, UnknownNameError
from lightsplit.metrics import METRICS

NAMES = [
    "correlation",
    "lpips",
    "lpips_crop",
    "mse",
    "mse_foreground",
    "psnr",
    "psnr_foreground",
    "reidentification",
    "scaled_mse",
    "ssim",
    "ssim_crop",
]
OF_ROWS = ["r2", "row_mse"]
OF_TEXTS = ["text_reidentification", "token_accuracy", "token_f1"]
WITHOUT_WEIGHTS = [name for name in NAMES if not name.startswith("lpips")]


def test_these_are_the_metrics():
    known = sorted([*NAMES, *OF_ROWS, *OF_TEXTS])
    assert METRICS.names() == known
    for kind, names in (("image", NAMES), ("table", OF_ROWS), ("text", OF_TEXTS)):
        assert all(kind in METRICS.create(name).kinds for name in names)
    assert [METRICS.create(name).name for name in NAMES] == NAMES
    needy = [name for name in NAMES if METRICS.create(name).needs_weights]
    assert needy == ["lpips", "lpips_crop"]


def test_an_unknown_metric_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'ssim'"):
        METRICS.create("sim")


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_a_better_reconstruction_moves_against_privacy(name, digits):
    metric = METRICS.create(name)
    noise = torch.randn(digits.shape)
    near = metric((digits + 0.05 * noise).clamp(0, 1), digits).mean()
    far = metric((digits + 2.0 * noise).clamp(0, 1), digits).mean()
    assert (near > far) == metric.higher_is_better
    assert metric.more_private == ("lower" if near > far else "higher")


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
@pytest.mark.parametrize("kind", ["equal", "noise", "black", "negative"])
def test_values_are_one_per_image_and_lie_in_the_stated_span(name, kind, digits):
    metric = METRICS.create(name)
    guesses = {
        "equal": digits,
        "noise": torch.rand(digits.shape),
        "black": torch.zeros_like(digits),
        "negative": 1 - digits,
    }
    values = metric(guesses[kind], digits)
    assert values.shape == (len(digits),)
    assert (values >= metric.lowest - 1e-6).all()
    assert (values <= metric.highest + 1e-6).all()


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
@pytest.mark.parametrize("sides", [(1, 1), (5, 1), (12, 12)])
def test_flat_images_give_finite_values(name, sides):
    levels = torch.tensor([0.0, 0.05, 0.1, 0.7, 1.0])
    pairs = torch.cartesian_prod(levels, levels).T.reshape(2, 25, 1, 1, 1)
    guesses, originals = pairs.expand(2, 25, 3, *sides)
    assert METRICS.create(name)(guesses, originals).isfinite().all()


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_an_images_value_does_not_depend_on_its_neighbours(name, digits):
    metric = METRICS.create(name)
    guesses = (digits + 0.3 * torch.randn(digits.shape)).clamp(0, 1)
    singles = zip(torch.split(guesses, 1), torch.split(digits, 1), strict=True)
    alone = torch.cat([metric(*single) for single in singles])
    together = metric(guesses, digits)
    if metric.needs_all_images:
        assert bool((alone == 1).all())  # the nearest of one
        assert together.mean() < 1
    else:
        torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_two_shapes_are_refused_with_both(name, tmp_path):
    with pytest.raises(ConfigError, match=r"\(2, 1, 8, 8\) and \(2, 1, 8, 9\)"):
        METRICS.create(name)(
            torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 9), weights=tmp_path
        )


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (1, 1, 1, 8, 8)])
def test_tensors_that_are_not_batches_of_images_are_refused(shape):
    with pytest.raises(ConfigError, match=r"expected .* \(N, C, H, W\)"):
        METRICS.create("mse")(torch.rand(shape), torch.rand(shape))


def test_an_empty_batch_is_refused():
    with pytest.raises(ConfigError, match="expected images, got none"):
        METRICS.create("mse")(torch.rand(0, 1, 8, 8), torch.rand(0, 1, 8, 8))


def test_bytes_are_refused_because_their_range_is_another():
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    with pytest.raises(ConfigError, match=r"floating-point.*uint8"):
        METRICS.create("mse")(images, images)


def test_half_precision_is_scored_in_single():
    guesses, originals = torch.rand(4, 1, 8, 8).half(), torch.rand(4, 1, 8, 8)
    values = METRICS.create("mse")(guesses, originals)
    assert values.dtype == torch.float32
    assert torch.equal(values, METRICS.create("mse")(guesses.float(), originals))


def test_lpips_without_a_folder_says_what_to_give():
    with pytest.raises(ConfigError, match="weights=data_folder"):
        METRICS.create("lpips")(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8))
