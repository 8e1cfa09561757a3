import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lightsplit.backdoors.detectors.cosine_scores import (
    cosine_scores,
    median_of_others,
    robust_z,
)

pytestmark = pytest.mark.slow

VALUES = st.lists(st.integers(-100, 100), min_size=3, max_size=12).map(
    lambda hundredths: np.array(hundredths) / 100
)


@pytest.mark.parametrize("clients", [3, 4, 9, 10])
def test_the_median_of_the_others_leaves_each_client_out(clients):
    vectors = np.random.default_rng(clients).integers(0, 4, (2, clients, 30)) / 2
    left_out = [
        np.median(np.delete(vectors, client, axis=-2), axis=-2)
        for client in range(clients)
    ]
    assert np.array_equal(median_of_others(vectors), np.stack(left_out, axis=-2))


@settings(deadline=None)
@given(values=VALUES, factor=st.floats(0.5, 100), shift=st.floats(-10, 10))
def test_robust_scores_do_not_depend_on_unit_and_origin(values, factor, shift):
    before, after = robust_z(values), robust_z(factor * values + shift)
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(values=arrays(np.float64, 5, elements=st.floats(-1, 1)))
def test_robust_scores_are_finite(values):
    assert np.isfinite(robust_z(values)).all()


def test_a_single_deviation_among_equal_values_scores_high():
    z = robust_z(np.array([0.9, *[0.5] * 9]))
    assert z[0] > 3
    assert not z[1:].any()


def test_robust_scores_of_normal_values_are_standard_deviations():
    values = np.random.default_rng(0).normal(5, 3, 100_000)
    assert robust_z(values).std() == pytest.approx(1, abs=0.02)


def test_one_side_ignores_clients_that_are_more_like_the_others():
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
