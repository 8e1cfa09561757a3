import pytest
import torch

from lightsplit.backdoors import DETECTORS


def test_a_client_that_pulls_against_the_trusted_one_is_flagged(make_piece):
    pulls = [[1.0, 0], [1, 1], [-1, 0.1], [0, 1]]
    evidence = [
        make_piece(client, torch.tensor(pull).double(), torch.zeros(2))
        for client, pull in enumerate(pulls)
    ]
    verdict = DETECTORS.create("fltrust", clients=4, trusted_client=0).judge(evidence)
    assert verdict.flagged == (2,)
    assert verdict.scores[:2] == pytest.approx((0, 1 - 0.5**0.5))


def test_no_client_is_judged_while_the_trusted_one_is_away(field):
    detector = DETECTORS.create("fltrust", clients=5, trusted_client=4)
    assert detector.judge(field(5)[:4]).scores == (0,) * 4
