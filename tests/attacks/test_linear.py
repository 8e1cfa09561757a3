"""The linear MMSE estimate."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import floats
from torch import nn

from lightsplit.attacks import ATTACKS, equip, linear
from lightsplit.attacks.linear import cross_fit, explained_share, fit_linear
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow


def pairs(count, size, targets=3, noise=0.0):
    codes = torch.randn(count, size)
    truth = codes @ torch.randn(size, targets) + 2 + noise * torch.randn(count, targets)
    return codes, truth


def with_one(codes):
    return np.column_stack([codes.numpy(), np.ones(len(codes))]).astype(np.float64)


def with_zeros(codes):
    return torch.cat([codes, torch.zeros(len(codes), 60)], dim=1)


@pytest.fixture
def no_ridge(monkeypatch):
    monkeypatch.setattr(linear, "RIDGES", (1e-9,))


@pytest.mark.usefixtures("no_ridge")
def test_with_many_pairs_it_is_the_least_squares_fit():
    codes, targets = pairs(400, 12, noise=0.3)
    expected, *_ = np.linalg.lstsq(
        with_one(codes), targets.double().numpy(), rcond=None
    )
    unseen = torch.randn(50, 12)
    estimate = fit_linear(codes, targets)(unseen)
    np.testing.assert_allclose(estimate, with_one(unseen) @ expected, atol=1e-5)


@pytest.mark.usefixtures("no_ridge")
def test_with_fewer_pairs_than_values_it_is_the_least_norm_fit():
    codes, targets = (rows.double() for rows in pairs(30, 80))
    mean, offset = codes.mean(dim=0), targets.mean(dim=0)
    inverse = np.linalg.pinv((codes - mean).numpy(), rcond=1e-9)
    expected = torch.from_numpy(inverse) @ (targets - offset)
    unseen = torch.randn(20, 80)
    by_hand = (unseen - mean) @ expected + offset
    estimate = fit_linear(codes, targets)(unseen)
    torch.testing.assert_close(estimate.double(), by_hand, atol=1e-4, rtol=0)


@pytest.mark.usefixtures("no_ridge")
def test_both_forms_of_the_system_give_the_same_estimate():
    codes, targets = pairs(100, 60, noise=0.1)
    unseen = torch.randn(10, 60)
    few = fit_linear(codes, targets)(unseen)
    many = fit_linear(with_zeros(codes), targets)(with_zeros(unseen))
    torch.testing.assert_close(many, few, atol=1e-4, rtol=0)


@settings(max_examples=10, deadline=None)
@given(scale=floats(1e-3, 1e3), shift=floats(-10, 10))
def test_the_scale_and_shift_of_a_code_do_not_matter(scale, shift):
    torch.manual_seed(1)
    codes, targets = pairs(60, 8, noise=0.5)
    plain = fit_linear(codes, targets)(codes)
    moved = fit_linear(codes.double() * scale + shift, targets)
    estimate = moved(codes.double() * scale + shift)
    torch.testing.assert_close(estimate, plain, atol=1e-3, rtol=0)


def test_it_is_exact_for_an_invertible_linear_head(scene):
    head = nn.Sequential(nn.Flatten(), nn.Linear(64, 64))
    nn.init.orthogonal_(head[1].weight)
    made = scene(head=head)
    images = equip(ATTACKS.get("linear"), made.knowledge).reconstruct(made.view)
    assert made.error(images) < 1e-8


def test_on_a_shallow_cut_it_beats_every_trivial_attacker_tenfold(scene, trivial_error):
    made = scene()
    images = equip(ATTACKS.get("linear"), made.knowledge).reconstruct(made.view)
    assert made.error(images) < 0.1 * trivial_error(made)


def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene(noise=True)
    images = equip(ATTACKS.get("linear"), made.knowledge).reconstruct(made.view)
    assert made.error(images) > 0.95 * trivial_error(made, ("mean-image",))


def test_two_seeds_of_the_projection_give_different_images(scene):
    images = [
        equip(ATTACKS.get("linear"), made.knowledge).reconstruct(made.view)
        for made in (scene("lightsplit-f", ratio=8, seed=seed) for seed in (1, 2))
    ]
    assert not torch.equal(*images)


def test_a_smaller_code_gives_less_of_the_activation_away(scene):
    shares = []
    for ratio in (1, 4, 16, 64):
        knowledge = scene("lightsplit-f", ratio=ratio).knowledge
        attack = equip(ATTACKS.get("linear"), knowledge)
        shares.append(attack.activation_r2())
    assert shares[0] > 0.999
    assert shares == sorted(shares, reverse=True)


def test_it_explains_far_more_than_the_share_of_values_that_was_sent(scene):
    knowledge = scene("lightsplit-f", ratio=16).knowledge
    assert equip(ATTACKS.get("linear"), knowledge).activation_r2() > 0.5


def test_noise_explains_nothing():
    assert abs(explained_share(torch.randn(2000, 5), torch.randn(2000, 4))) < 0.05


def test_values_that_never_change_do_no_harm():
    codes, targets = pairs(200, 6)
    codes[:, 3] = 0
    assert torch.isfinite(fit_linear(codes, targets)(codes)).all()
    assert torch.isfinite(
        fit_linear(torch.zeros(50, 4), targets[:50])(codes[:, :4])
    ).all()


def test_a_handful_of_pairs_is_refused():
    with pytest.raises(AuditError, match="at least 10 pairs"):
        fit_linear(torch.randn(9, 4), torch.randn(9, 4))


def test_a_note_states_the_variance_that_a_smaller_code_keeps(scene):
    made = scene("lightsplit-f", ratio=4)
    attack = equip(ATTACKS.get("linear"), made.knowledge)
    attack.reconstruct(made.view)
    assert "of the activations' variance" in attack.notes[0]


def test_a_cross_fitted_estimate_knows_its_own_rows_no_better_than_others():
    torch.manual_seed(0)
    codes, targets = torch.randn(80, 30), torch.randn(80, 5)  # nothing to be found
    fit = cross_fit(codes, targets)
    own = torch.cat(
        [
            fit.estimates[int(fold)](code[None])
            for code, fold in zip(codes, fit.folds, strict=True)
        ]
    )
    fitted = fit_linear(codes, targets, ridge=1e-8)(codes)
    variance = float(targets.square().mean())
    assert float((fitted - targets).square().mean()) < 0.8 * variance  # its own rows
    assert float((own - targets).square().mean()) > 0.95 * variance
    assert fit.folds.bincount().tolist() == [20] * 4


@pytest.mark.parametrize("count", [20, 300], ids=["fewer-pairs", "more-pairs"])
def test_a_fold_is_left_out_exactly(count):
    torch.manual_seed(1)
    codes, targets = pairs(count, 25, noise=0.3)
    fit = cross_fit(codes, targets)
    systems = linear._Moments.leaving_out(codes, targets, fit.folds)
    for fold, system in enumerate(systems):
        kept = fit.folds != fold
        direct = fit_linear(codes[kept], targets[kept], ridge=1e-3)
        torch.testing.assert_close(system.solve(1e-3).weight, direct.weight)
        torch.testing.assert_close(system.code_mean, direct.code_mean)


def test_one_pair_that_is_kept_out_explains_nothing():
    codes, targets = torch.randn(11, 3), torch.randn(11, 4)
    assert explained_share(codes, targets) == 0
