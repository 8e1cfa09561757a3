import pytest
import torch

from lightsplit.backdoors import make_detector


def test_who_pulls_against_the_trusted_client_is_flagged(make_piece):
    pulls = [[1.0, 0], [1, 1], [-1, 0.1], [0, 1]]
    evidence = [
        make_piece(client, torch.tensor(pull).double(), torch.zeros(2))
        for client, pull in enumerate(pulls)
    ]
    verdict = make_detector("fltrust", clients=4, trusted=0).judge(evidence)
    assert verdict.flagged == (2,)
    assert verdict.scores[:2] == pytest.approx((0, 1 - 0.5**0.5))


def test_nobody_is_judged_while_the_trusted_client_is_away(field):
    detector = make_detector("fltrust", clients=5, trusted=4)
    assert detector.judge(field(5)[:4]).scores == (0,) * 4
