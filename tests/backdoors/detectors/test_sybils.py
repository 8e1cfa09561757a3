import numpy as np
import pytest
import torch

from lightsplit.backdoors import DETECTORS
from lightsplit.backdoors.detectors.sybils import pairwise_cosines


def evidence(make_piece, vectors):
    rows = torch.from_numpy(vectors)
    return [
        make_piece(client, row, torch.zeros_like(row))
        for client, row in enumerate(rows)
    ]


@pytest.fixture(params=["foolsgold", "contra"])
def detector(request):
    return DETECTORS.create(request.param, clients=8)


def test_sybils_are_distinguished_from_clients_with_different_aims(
    detector, make_piece
):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((8, 300))
    vectors[5:] = vectors[5] + 0.01 * generator.standard_normal((3, 300))
    for _ in range(3):
        verdict = detector.judge(evidence(make_piece, vectors))
    assert verdict.flagged == (5, 6, 7)


def test_a_single_attacker_has_no_twin_and_is_not_found(detector, make_piece):
    vectors = np.random.default_rng(1).standard_normal((8, 300))
    vectors[3] *= 50
    assert detector.judge(evidence(make_piece, vectors)).flagged == ()


def test_a_clients_earlier_gradients_count(detector, make_piece):
    generator = np.random.default_rng(2)
    vectors = generator.standard_normal((8, 300))
    alike = vectors.copy()
    alike[6:] = 20 * vectors[6]
    detector.judge(evidence(make_piece, alike))
    assert detector.judge(evidence(make_piece, vectors)).flagged == (6, 7)


def test_cosines_are_those_of_the_definition():
    rows = torch.tensor([[1.0, 0], [1, 1], [0, 0]]).double()
    half = 0.5**0.5
    expected = torch.tensor([[0, half, 0], [half, 0, 0], [0, 0, 0]]).double()
    torch.testing.assert_close(pairwise_cosines(rows), expected)
