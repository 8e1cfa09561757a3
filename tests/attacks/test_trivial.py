"""Attackers that learn nothing."""

import pytest
import torch

from lightsplit.attacks import ATTACKS, Knowledge, Pairs, equip
from lightsplit.errors import AuditError


def run(name, scene):
    return equip(ATTACKS.get(name), scene.knowledge).reconstruct(scene.view)


def test_every_trivial_attacker_returns_an_image_for_every_code(scene):
    made = scene()
    for name in ("mean-image", "class-mean", "all-black", "nearest-image"):
        assert run(name, made).shape == made.truth.shape


def test_the_mean_image_is_the_same_for_every_code(scene):
    made = scene()
    images = run("mean-image", made)
    expected = made.knowledge.auxiliary.images.mean(dim=0)
    assert torch.equal(images, expected.expand_as(images))


def test_the_class_mean_is_the_mean_of_the_victims_class(scene):
    made = scene()
    known = made.knowledge.auxiliary
    expected = known.images[known.labels == made.labels[7]].mean(dim=0)
    torch.testing.assert_close(run("class-mean", made)[7], expected)


def test_the_class_mean_of_an_unknown_class_is_the_mean_image(scene):
    made = scene()
    known = made.knowledge.auxiliary
    stranger = torch.full_like(made.labels, 99)
    attack = ATTACKS.create("class-mean", auxiliary=known, labels=stranger)
    images = attack.reconstruct(made.view)
    torch.testing.assert_close(images[0], known.images.mean(dim=0))


def test_the_class_mean_wants_a_label_for_every_code(scene):
    made = scene()
    attack = ATTACKS.create(
        "class-mean", auxiliary=made.knowledge.auxiliary, labels=made.labels[:3]
    )
    with pytest.raises(AuditError, match="each of 100 codes, got 3"):
        attack.reconstruct(made.view)


def test_knowing_the_class_helps_against_guessing(scene):
    made = scene()
    errors = [made.error(run(name, made)) for name in ("class-mean", "mean-image")]
    assert errors[0] < errors[1] < made.error(run("all-black", made))


def test_the_nearest_image_is_the_victims_own_when_the_attacker_has_it(scene):
    made = scene()
    own = Pairs(made.view.codes, made.view.codes, made.truth)
    images = ATTACKS.create("nearest-image", pairs=own).reconstruct(made.view)
    assert torch.equal(images, made.truth)


def test_the_nearest_image_beats_the_mean_image_and_not_on_noise(scene):
    for noise in (False, True):
        made = scene(noise=noise)
        errors = [
            made.error(run(name, made)) for name in ("nearest-image", "mean-image")
        ]
        assert (errors[0] < 0.8 * errors[1]) is not noise


def test_an_attack_without_the_knowledge_it_needs_is_not_built():
    nothing = Knowledge(image_shape=(1, 8, 8), classes=10)
    assert equip(ATTACKS.get("mean-image"), nothing) is None
    assert equip(ATTACKS.get("all-black"), nothing) is not None
