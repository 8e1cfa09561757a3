"""The structured projection, compared with SciPy's transform, and its cost."""

import numpy as np
import pytest
import scipy.fft
import torch

from lightsplit.codecs.projections import PROJECTIONS
from lightsplit.codecs.projections.dct import _draw


def make(size, code_size, seed=0):
    return PROJECTIONS.create("dct", size=size, code_size=code_size, seed=seed)


def written_out(activation, draw):
    """Signs, permutation, DCT-II; the same again; keep k."""
    once = scipy.fft.dct(
        (activation * draw.first_signs)[:, draw.first_order], norm="ortho"
    )
    twice = scipy.fft.dct(
        (once * draw.second_signs)[:, draw.second_order], norm="ortho"
    )
    return twice[:, draw.kept]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 64, 1024, 2880, 5684])
def test_projecting_equals_scipy_step_by_step(size):
    code_size = max(1, size // 2)
    activation = np.random.default_rng(0).standard_normal((3, size))
    expected = written_out(activation, _draw(size, code_size, seed=5))
    code = make(size, code_size, seed=5).project(torch.from_numpy(activation))
    np.testing.assert_allclose(code.numpy(), expected, atol=1e-6)


def test_the_draws_are_signs_permutations_and_distinct_places():
    draw = _draw(100, 30, seed=1)
    assert set(draw.first_signs) == set(draw.second_signs) == {-1, 1}
    assert sorted(draw.first_order) == sorted(draw.second_order) == list(range(100))
    assert len(set(draw.kept)) == 30
    assert not np.array_equal(draw.first_order, draw.second_order)


def test_the_integers_are_the_same_on_every_machine():
    # Frozen: a change here makes clients and servers of two versions disagree.
    draw = _draw(8, 3, seed=0)
    assert draw.first_signs.tolist() == [-1, 1, -1, 1, -1, 1, 1, 1]
    assert draw.first_order.tolist() == [3, 7, 0, 4, 1, 2, 5, 6]
    assert draw.kept.tolist() == [7, 0, 3]
    assert make(8, 3).fingerprint.startswith("012031e9de2615a7")


@pytest.mark.parametrize(("size", "code_size"), [(4096, 512), (5684, 5684)])
def test_no_buffer_is_larger_than_the_activation_and_its_last_bin(size, code_size):
    buffers = list(make(size, code_size).buffers())
    assert max(buffer.numel() for buffer in buffers) <= size + 2
    assert sum(buffer.nbytes for buffer in buffers) <= 96 * size


def test_a_spike_is_spread_over_the_code():
    spikes = torch.eye(4096)[:200]
    shares = make(4096, 512).project(spikes).square().sum(dim=1)
    assert (shares - 1 / 8).abs().max() < 1 / 16


def test_an_activation_is_left_unchanged():
    activation, projection = torch.randn(4, 64), make(64, 8)
    before = activation.clone()
    code = projection.project(activation)
    kept = code.clone()
    projection.lift(code)
    assert torch.equal(activation, before)
    assert torch.equal(code, kept)
