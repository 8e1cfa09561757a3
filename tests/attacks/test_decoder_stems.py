"""How codes are read before they are decoded."""

import torch

from lightsplit.attacks import Pairs
from lightsplit.attacks.decoder_stems import CrossFitted, Grid, Stem
from lightsplit.attacks.linear import cross_fit


def test_a_row_is_estimated_without_its_own_fold_and_another_by_all():
    torch.manual_seed(0)
    codes, targets = torch.randn(40, 3), torch.randn(40, 2)
    fit = cross_fit(codes, targets)
    lift = CrossFitted(fit)
    own = lift(codes, fit.folds)
    for row in range(5):
        estimate = fit.estimates[int(fit.folds[row])]
        torch.testing.assert_close(own[row], estimate(codes[row : row + 1])[0])
    mean = torch.stack([each(codes) for each in fit.estimates]).mean(dim=0)
    torch.testing.assert_close(lift(codes), mean)


def test_every_way_to_read_a_code_reaches_the_maps():
    torch.manual_seed(0)
    activations, images = torch.randn(20, 5, 6, 6), torch.rand(20, 1, 12, 12)
    pairs = Pairs(torch.randn(20, 2, 6, 6), activations, images)
    stem = Stem(pairs, Grid(6, 6, 2), width=4, seed=0)
    assert stem(pairs.codes).shape == (20, 4, 6, 6)
    for part in (stem.own_places, stem.places, stem.dense[2], stem.image):
        before = stem(pairs.codes)
        for tensor in part.state_dict().values():
            tensor.mul_(2)
        assert not torch.allclose(stem(pairs.codes), before)
