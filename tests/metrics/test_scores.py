"""Summaries: intervals that cover, the worst share, and the collection of batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lightsplit.errors import ConfigError
from lightsplit.metrics import METRICS, Scores, summarise, wilson_interval

MSE, SSIM = METRICS.create("mse"), METRICS.create("ssim")
HITS = METRICS.create("reidentification")
laws = settings(max_examples=25, deadline=None)

numbers = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30)


@laws
@given(numbers)
def test_the_mean_lies_in_its_interval_and_the_interval_among_the_values(values):
    summary = summarise(torch.tensor(values), MSE)
    assert summary.mean == pytest.approx(np.mean(values))
    slack = 1e-9
    assert min(values) - slack <= summary.low <= summary.high <= max(values) + slack
    assert summary.images == len(values)


@pytest.mark.parametrize("count", [1, 50, 100, 101, 250])
def test_worst_is_the_mean_of_the_best_recovered_hundredth(count):
    values = torch.randperm(count).float()
    kept = {1: 1, 50: 1, 100: 1, 101: 2, 250: 3}[count]
    ordered = sorted(values.tolist())
    assert summarise(values, MSE).worst == pytest.approx(np.mean(ordered[:kept]))
    assert summarise(values, SSIM).worst == pytest.approx(np.mean(ordered[-kept:]))


def test_the_interval_covers_the_truth_about_nineteen_times_in_twenty():
    generator = torch.Generator().manual_seed(1)
    samples = torch.rand(120, 60, generator=generator).square()  # mean 1/3, skewed
    found = [summarise(sample, MSE) for sample in samples]
    covered = sum(one.low <= 1 / 3 <= one.high for one in found)
    assert 0.88 <= covered / 120 <= 0.995


def test_the_interval_is_that_of_the_normal_for_many_images():
    values = torch.rand(2000)
    summary = summarise(values, MSE)
    half_width = 1.96 * values.std().item() / 2000**0.5
    assert summary.high - summary.mean == pytest.approx(half_width, rel=0.15)
    assert summary.mean - summary.low == pytest.approx(half_width, rel=0.15)


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    values = torch.rand(30)
    assert summarise(values, MSE, seed=3) == summarise(values, MSE, seed=3)
    assert summarise(values, MSE, seed=3).low != summarise(values, MSE, seed=4).low


@laws
@given(st.integers(1, 500), st.data())
def test_a_proportion_has_the_interval_of_wilson(trials, data):
    hits = data.draw(st.integers(0, trials))
    expected = stats.binomtest(hits, trials).proportion_ci(method="wilson")
    assert wilson_interval(hits / trials, trials) == pytest.approx(
        (expected.low, expected.high), abs=1e-6
    )


def test_ten_misses_of_ten_do_not_prove_that_hits_never_happen():
    summary = summarise(torch.zeros(10), HITS)
    assert summary.low == 0
    assert summary.high == pytest.approx(0.278, abs=1e-3)


@pytest.mark.parametrize("values", [torch.zeros(0), torch.zeros(2, 2)])
def test_anything_but_one_value_per_image_is_refused(values):
    with pytest.raises(ConfigError, match="one value for each image"):
        summarise(values, MSE)


def test_scores_join_batches_in_order():
    scores, values = Scores(), torch.rand(10)
    for batch in torch.split(values, 4):
        scores.add({"mse": batch, "psnr": -batch})
    assert torch.equal(scores.values()["mse"], values)
    summaries = scores.summaries(seed=5)
    assert list(summaries) == ["mse", "psnr"]
    assert summaries["mse"] == summarise(values, MSE, seed=5)
    assert summaries["psnr"].worst == (-values).max()


def test_scores_without_a_batch_are_empty():
    assert Scores().values() == {}
    assert Scores().summaries() == {}


def test_scores_refuse_a_batch_of_other_metrics():
    scores = Scores()
    scores.add({"mse": torch.rand(2)})
    with pytest.raises(ConfigError, match="values of mse for every batch, got psnr"):
        scores.add({"psnr": torch.rand(2)})
