import pytest
import torch

from lightsplit.attacks import ATTACKS, LabelScore, equip
from lightsplit.attacks.knowledge import Knowledge
from lightsplit.audits.scoring import (
    Judge,
    doubts,
    fingerprint,
    label_figures,
    lpips_weights,
)
from lightsplit.errors import LightSplitError
from lightsplit.truths import ImageTruth


@pytest.fixture
def judge():
    torch.manual_seed(0)
    images = torch.rand(20, 1, 8, 8)
    return Judge(ImageTruth((1, 8, 8)), images, torch.zeros(20, dtype=torch.int64))


@pytest.fixture
def attack():
    return equip(ATTACKS.get("all-black"), Knowledge((1, 8, 8), 10))


def test_a_perfect_reconstruction_scores_perfectly(judge):
    figures = judge.score(judge.originals)
    assert figures["ssim"]["mean"] == pytest.approx(1)
    assert figures["mse"]["mean"] == 0
    assert figures["reidentification"]["mean"] == 1
    assert figures["mse"]["images"] == 20


def test_lpips_is_left_out_without_its_weights(judge):
    assert "lpips" not in judge.score(judge.originals)


def test_an_attack_with_too_few_images_is_refused(judge):
    with pytest.raises(LightSplitError):
        judge.score(judge.originals[:5])


def test_a_fingerprint_tells_any_two_results_apart(judge):
    images = judge.originals
    other = images.clone()
    other[3, 0, 0, 0] += 1e-6
    assert fingerprint(images) == fingerprint(images.clone())
    assert fingerprint(images) != fingerprint(other)


def test_the_same_picture_for_every_code_is_doubted(attack):
    attack.kind = "published"
    images = torch.rand(1, 1, 8, 8).expand(5, -1, -1, -1)
    assert "did not look" in doubts(attack, images)[0]
    assert doubts(attack, torch.rand(5, 1, 8, 8)) == []


def test_a_trivial_attacker_may_say_the_same_to_everyone(attack):
    assert doubts(attack, torch.zeros(5, 1, 8, 8)) == []


def test_a_share_of_labels_has_an_interval_and_an_area_has_none():
    share = label_figures(LabelScore("accuracy", 0.5, 0.1, 100))
    assert share["low"] < 0.5 < share["high"]
    assert label_figures(LabelScore("leak_auc", 0.7, 0.5, 100)) == {"mean": 0.7}


def test_weights_that_are_not_there_are_not_fetched(tmp_path):
    assert lpips_weights(tmp_path) is None
