import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lightsplit.backdoors.detectors.calibration import (
    cosine_scores,
    false_alarm_rate,
    robust_z,
    threshold_for,
)
from lightsplit.errors import ConfigError

pytestmark = pytest.mark.slow

FORMS = [("mean", "two"), ("mean", "one"), ("median", "two"), ("median", "one")]
VALUES = st.lists(st.integers(-100, 100), min_size=3, max_size=12).map(
    lambda hundredths: np.array(hundredths) / 100
)


def honest_rate(threshold, *, clients, consensus, sides, size, seeds=800):
    """Return how many honest fields have a score above the threshold."""
    generator = np.random.default_rng(1)
    vectors = 0.05 * generator.standard_normal((seeds, clients, size))
    vectors += generator.standard_normal((seeds, 1, size)) / np.sqrt(size)
    scores = cosine_scores(vectors, consensus=consensus, sides=sides)
    return (scores.max(axis=1) > threshold).mean()


@pytest.mark.parametrize(("consensus", "sides"), FORMS)
@pytest.mark.parametrize("clients", [5, 10])
def test_a_calibrated_threshold_keeps_its_false_alarm_rate_over_seeds(
    clients, consensus, sides
):
    form = {"clients": clients, "consensus": consensus, "sides": sides}
    threshold = threshold_for(0.05, **form)
    assert 0.02 <= honest_rate(threshold, size=16, **form) <= 0.08
    assert honest_rate(threshold, size=200, **form) <= 0.08  # shorter tails


def test_three_sigmas_are_not_three_in_a_thousand():
    form = {"clients": 10, "consensus": "mean", "sides": "two"}
    stated = false_alarm_rate(3.0, **form)
    assert stated > 0.1
    assert honest_rate(3.0, size=16, **form) == pytest.approx(stated, abs=0.06)


@pytest.mark.parametrize(("consensus", "sides"), FORMS)
def test_rate_and_threshold_are_each_others_inverse(consensus, sides):
    form = {"clients": 8, "consensus": consensus, "sides": sides}
    threshold = threshold_for(0.1, **form)
    assert false_alarm_rate(threshold, **form) == pytest.approx(0.1, abs=0.002)


@settings(deadline=None)
@given(values=VALUES, factor=st.floats(0.5, 100), shift=st.floats(-10, 10))
def test_robust_scores_do_not_depend_on_unit_and_origin(values, factor, shift):
    before, after = robust_z(values), robust_z(factor * values + shift)
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(values=arrays(np.float64, 5, elements=st.floats(-1, 1)))
def test_robust_scores_are_finite(values):
    assert np.isfinite(robust_z(values)).all()


def test_one_that_differs_where_all_others_agree_is_far_out():
    z = robust_z(np.array([0.9, *[0.5] * 9]))
    assert z[0] > 3
    assert not z[1:].any()


def test_robust_scores_of_normal_values_are_standard_deviations():
    values = np.random.default_rng(0).normal(5, 3, 100_000)
    assert robust_z(values).std() == pytest.approx(1, abs=0.02)


def test_one_side_ignores_who_is_more_like_the_others():
    vectors = np.random.default_rng(0).standard_normal((10, 30)) + 5
    vectors[0] = vectors[1:].mean(axis=0)
    two = cosine_scores(vectors, consensus="mean", sides="two")
    one = cosine_scores(vectors, consensus="mean", sides="one")
    assert two[0] > 0
    assert one[0] == 0


def test_a_median_consensus_does_not_follow_a_minority_however_strong():
    generator = np.random.default_rng(0)
    vectors = 1 + 0.1 * generator.standard_normal((10, 50))
    vectors[:3] = -100
    scores = cosine_scores(vectors, consensus="median", sides="one")
    assert scores[:3].min() > scores[3:].max()
    followed = cosine_scores(vectors, consensus="mean", sides="one")
    assert followed[:3].max() < followed[3:].max()


@pytest.mark.parametrize("rate", [0, 1, -0.5])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        threshold_for(rate, clients=5, consensus="mean", sides="two")
