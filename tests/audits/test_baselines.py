"""Whether an attack beats trivial attackers that know as much."""

import pytest
import torch

from lightsplit.audits.baselines import Baselines, is_ahead

IMAGES = 64


def scores(ssim, correlation=None):
    other = torch.zeros(IMAGES) if correlation is None else correlation
    return {"ssim": ssim, "correlation": other}


@pytest.fixture
def hard():
    """Scores that differ much from image to image."""
    return torch.rand(IMAGES, generator=torch.Generator().manual_seed(0))


def test_a_small_lead_on_every_image_counts_though_images_differ_much(hard):
    baselines = Baselines()
    baselines.add("mean-image", ("auxiliary",), scores(hard))
    leads = baselines.leads(("client",), scores(hard + 0.01))
    assert hard.std() > 0.2
    assert leads["ssim"].mean == pytest.approx(0.01)
    assert is_ahead(leads)


def test_the_same_images_are_no_lead(hard):
    baselines = Baselines()
    baselines.add("mean-image", ("auxiliary",), scores(hard, hard))
    assert not is_ahead(baselines.leads(("pairs",), scores(hard, hard)))


def test_every_baseline_must_be_beaten_in_one_and_the_same_metric(hard):
    baselines = Baselines()
    baselines.add("mean-image", (), scores(hard, hard))
    baselines.add("class-mean", (), scores(hard + 0.2, hard - 0.2))
    baselines.add("all-black", (), scores(hard - 0.2, hard + 0.2))
    leads = baselines.leads((), scores(hard + 0.1, hard + 0.1))
    assert leads["ssim"].over == "class-mean"
    assert leads["correlation"].over == "all-black"
    assert not is_ahead(leads)


def test_a_baseline_with_pairs_judges_attacks_with_pairs_only(hard):
    baselines = Baselines()
    baselines.add("mean-image", ("auxiliary",), scores(hard))
    baselines.add("nearest-image", ("pairs",), scores(hard + 0.3))
    found = scores(hard + 0.1)
    assert is_ahead(baselines.leads(("client", "image_shape"), found))
    assert not is_ahead(baselines.leads(("pairs",), found))


@pytest.mark.slow
def test_pure_luck_is_seldom_called_a_lead():
    wins = 0
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        draws = torch.randn(4, IMAGES, generator=generator)
        baselines = Baselines()
        baselines.add("mean-image", (), scores(draws[0], draws[1]))
        wins += is_ahead(baselines.leads((), scores(draws[2], draws[3])))
    assert wins <= 12  # 2.5 % are 5


def test_without_baselines_nothing_is_claimed(hard):
    assert not is_ahead(Baselines().leads((), scores(hard)))
