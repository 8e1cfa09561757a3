import math

import numpy as np
import pytest
import scipy.fft
import torch

from lightsplit.backdoors import DETECTORS
from lightsplit.backdoors.detectors.safesplit import (
    WIDTH,
    low_frequencies,
    rotation,
)

pytestmark = pytest.mark.slow


def test_low_frequencies_are_a_corner_of_the_two_dimensional_dct():
    weights = torch.randn(20 * WIDTH, dtype=torch.float64)
    spectrum = scipy.fft.dctn(weights.view(20, WIDTH).numpy(), norm="ortho")
    expected = torch.from_numpy(spectrum[:5, : WIDTH // 4].copy())
    torch.testing.assert_close(low_frequencies(weights), expected.flatten())


def test_weights_that_do_not_move_do_not_turn():
    weights = torch.randn(1000)
    assert not rotation(weights, weights).any()


def test_a_weight_whose_sign_changes_turns_by_half():
    before = torch.ones(WIDTH * 400)
    after = before.clone()
    after[0] = -1.0  # among so many it hardly moves the means
    assert abs(rotation(before, after)[0].item()) == pytest.approx(0.5, abs=0.01)


def test_nothing_is_judged_before_every_client_had_a_turn(field):
    verdict = DETECTORS.create("safesplit", clients=10).judge(field(9, malicious=[3]))
    assert verdict.scores == (0,) * 9


def test_at_least_one_turn_of_a_window_is_benign_by_each_score(field):
    verdict = DETECTORS.create("safesplit", clients=10).judge(field(10))
    assert sum(verdict.flags) <= 2 * (10 - 6)
    assert min(verdict.scores) <= 1


def test_scores_are_ranks_in_units_of_the_benign_half(field):
    verdict = DETECTORS.create("safesplit", clients=10).judge(field(10))
    ranks = np.array(verdict.scores) * 6
    assert np.allclose(ranks, ranks.round())
    assert math.isclose(ranks.max(), 10)
