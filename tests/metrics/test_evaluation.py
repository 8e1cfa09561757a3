"""All metrics of a set at once: chunks, clipping and refusals."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.errors import ConfigError, UnknownNameError
from lightsplit.metrics import METRICS, evaluate, evaluation

laws = settings(max_examples=25, deadline=None)
EVERY = [name for name in METRICS.names() if "image" in METRICS.create(name).kinds]
WITHOUT_WEIGHTS = [name for name in EVERY if not METRICS.create(name).needs_weights]


def test_without_weights_all_other_metrics_are_the_default(digits):
    values = evaluate(digits, digits)
    assert list(values) == WITHOUT_WEIGHTS
    assert all(value.shape == (64,) for value in values.values())


@pytest.mark.data
def test_with_weights_every_metric_is_the_default(digits, weights):
    assert list(evaluate(digits[:4], digits[:4], weights=weights)) == EVERY


def test_chunks_do_not_change_a_value(digits, monkeypatch):
    guesses = digits + 0.4 * torch.randn(digits.shape)
    whole = evaluate(guesses, digits)
    monkeypatch.setattr(evaluation, "CHUNK", 5)
    torch.testing.assert_close(evaluate(guesses, digits), whole)
    assert 0 < whole["reidentification"].mean() < 1


def test_each_value_equals_that_of_the_metric_alone(digits):
    guesses = torch.rand(digits.shape)
    for name, values in evaluate(guesses, digits).items():
        torch.testing.assert_close(values, METRICS.create(name)(guesses, digits))


@laws
@given(st.integers(0, 999), st.floats(0, 5))
def test_clipping_never_makes_a_reconstruction_worse(seed, spread):
    generator = torch.Generator().manual_seed(seed)
    originals = torch.rand(3, 1, 6, 6, generator=generator)
    guesses = originals + spread * torch.randn(originals.shape, generator=generator)
    names = ["mse", "mse_foreground"]
    clipped = evaluate(guesses, originals, metrics=names)
    raw = evaluate(guesses, originals, metrics=names, clip=False)
    assert all(bool((clipped[name] <= raw[name] + 1e-7).all()) for name in names)


def test_unclipped_values_are_scored_as_they_are():
    guesses, originals = torch.full((1, 1, 4, 4), 3.0), torch.zeros(1, 1, 4, 4)
    assert evaluate(guesses, originals, metrics=["mse"])["mse"].item() == 1
    raw = evaluate(guesses, originals, metrics=["mse"], clip=False)
    assert raw["mse"].item() == 9


def test_scale_free_metrics_take_unclipped_values(digits):
    names = ["correlation", "scaled_mse"]
    values = evaluate(20 * digits - 7, digits, metrics=names)
    torch.testing.assert_close(values["correlation"], torch.ones(64))
    torch.testing.assert_close(values["scaled_mse"], torch.zeros(64), rtol=0, atol=1e-6)


def test_the_given_tensors_stay_as_they_are(digits):
    guesses = 3 * torch.randn(digits.shape)
    before = guesses.clone()
    evaluate(guesses.requires_grad_(), digits)
    assert torch.equal(guesses, before)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_failed_attack_has_no_score(broken, digits):
    guesses = digits.clone()
    guesses[5, 0, 0, 0] = guesses[9, 0, 1, 1] = broken
    with pytest.raises(ConfigError, match="in 2 of 64, first in number 5"):
        evaluate(guesses, digits)


@pytest.mark.parametrize("scale", [2.0, -1.0, float("nan")])
def test_originals_that_are_not_between_0_and_1_are_refused(scale, digits):
    with pytest.raises(ConfigError, match=r"originals in \[0, 1\]"):
        evaluate(digits, digits * scale)


def test_an_unknown_metric_is_refused(digits):
    with pytest.raises(UnknownNameError, match="unknown metric 'fid'"):
        evaluate(digits, digits, metrics=["fid"])
