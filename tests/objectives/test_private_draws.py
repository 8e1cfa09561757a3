import math

import numpy as np
import pytest
import torch

from lightsplit import seeding
from lightsplit.objectives.private_draws import draw_normal, draw_words
from lightsplit.runtime import Secret


def words(count=64, value=1.0, scope=lambda: seeding.scope(0, "here")):
    with scope():
        return draw_words(count, torch.full((2, 3), value))


def test_the_same_place_and_numbers_get_the_same_words_and_others_get_others():
    assert (words() == words()).all()
    assert (words() != words(scope=lambda: seeding.scope(0, "there"))).all()
    assert (words() != words(value=1.0000001)).all()


def test_a_real_secret_gives_other_words_than_the_seed_in_the_contract():
    hidden = Secret(2**200 + 7)
    mine = words(scope=lambda: hidden.scope("here"))
    assert (mine == words(scope=lambda: hidden.scope("here"))).all()
    assert (mine != words(scope=lambda: Secret(7).scope("here"))).all()


def test_words_use_all_their_bits_evenly():
    bits = np.unpackbits(words(20_000).view(np.uint8)).reshape(-1, 64)
    assert abs(bits.mean(0) - 0.5).max() < 5 * 0.5 / math.sqrt(len(bits))


@pytest.mark.parametrize("shape", [(40_000,), (7, 3, 1001)])
def test_normal_numbers_have_the_moments_and_tails_of_a_normal(shape):
    with seeding.scope(3, "normal"):
        drawn = draw_normal(torch.zeros(shape)).double()
    assert drawn.shape == shape
    error = 5 / math.sqrt(drawn.numel())
    assert abs(drawn.mean().item()) < error
    assert abs(drawn.var().item() - 1) < error * math.sqrt(2)
    assert abs(drawn.pow(4).mean().item() - 3) < error * math.sqrt(96)
    beyond = (drawn.abs() > 1.959964).double().mean().item()
    assert abs(beyond - 0.05) < error * math.sqrt(0.05)
