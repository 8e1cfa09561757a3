"""FORA: finds images without labels or pairs, and leaves the victim alone."""

import pytest
import torch

from lightsplit.attacks import ATTACKS, InfersLabels, equip, fora_reference
from lightsplit.attacks.fora_training import Settings

pytestmark = pytest.mark.slow

# Rates for a tiny problem; the released ones are for 40,000 iterations.
FAST = Settings(lr=3e-3, critic_lr=1e-3, penalty=10, width=8)
SMALL = Settings(width=8)


def begun(run, form="published", settings=SMALL, **options):
    return run.prepare("fora", form=form, settings=settings, **options)


def is_same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_it_finds_images_in_codes_and_nothing_in_noise(in_training, trivial_error):
    run = in_training(batch_size=16)
    attack = begun(run, settings=FAST)
    run.train(120, attack)
    error = run.error(attack.reconstruct(run.view))
    trivial = trivial_error(run, ("mean-image", "class-mean"))
    assert error < 0.8 * trivial
    run.noise = True
    assert run.error(attack.reconstruct(run.view)) > trivial


def test_the_victim_is_the_same_with_and_without_the_attack(in_training):
    alone, watched = (in_training(cut="l2") for _ in range(2))
    alone.train(3)
    watched.train(3, begun(watched))
    for one, other in zip(alone.sides(), watched.sides(), strict=True):
        assert is_same(one.state(), other.state())


def test_substitute_and_decoder_see_two_batches_in_an_iteration(in_training):
    run = in_training()
    attack = begun(run)
    run.train(3, attack)
    for name in ("substitute", "decoder"):
        counted = {
            int(tensor)
            for key, tensor in attack.learners[name].state().items()
            if key.endswith("num_batches_tracked")
        }
        assert counted == {6}, name


@pytest.mark.parametrize("form", ["published", "adaptive"])
@pytest.mark.parametrize(
    "codec", ["lightsplit-f", "lightsplit-l", "learned-1x1", "topk"]
)
def test_every_codec_can_be_attacked_in_both_forms(in_training, codec, form):
    run = in_training(codec=codec, ratio=8.0)
    attack = begun(run, form)
    run.train(2, attack)
    assert attack.reconstruct(run.view).shape == run.targets.images.shape
    assert not isinstance(attack, InfersLabels)


def test_the_adaptive_substitute_makes_codes(in_training):
    run = in_training(codec="lightsplit-f", ratio=8.0)
    images = torch.rand(3, 1, 8, 8)
    made = {
        form: begun(run, form).learners["substitute"].network(images).shape
        for form in ("published", "adaptive")
    }
    assert made == {"published": (3, 16, 8, 8), "adaptive": (3, 128)}


def test_an_attack_that_loads_a_state_continues_the_same(in_training):
    run = in_training()
    first = begun(run)
    run.train(2, first)
    second = begun(run)
    second.load({name: kept.clone() for name, kept in first.state().items()})
    run.train(2, first, second)
    assert is_same(first.state(), second.state())


def test_images_are_given_back_between_0_and_1(in_training):
    run = in_training()
    attack = begun(run)
    run.train(1, attack)
    images = attack.reconstruct(run.view)
    assert 0 <= float(images.min()) < float(images.max()) <= 1


@pytest.fixture
def reference(monkeypatch):
    """Return the error of the reference decoder on a scene, and the mean image's."""

    def errors(made, steps):
        monkeypatch.setitem(fora_reference.STEPS, "quick", steps)
        attack = equip(ATTACKS.get("fora-reference"), made.knowledge)
        known = made.knowledge.auxiliary.images
        mean = made.error(known.mean(dim=0, keepdim=True))
        return made.error(attack.reconstruct(made.view)), mean

    return errors


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "ratio"), [("raw", 1), ("lightsplit-f", 4)])
def test_the_reference_decoder_beats_the_mean_image(scene, reference, codec, ratio):
    error, mean = reference(scene(codec, ratio=ratio), 120)
    assert error < 0.6 * mean


def test_the_reference_decoder_finds_nothing_in_noise(scene, reference):
    error, mean = reference(scene(noise=True), 20)
    assert error > 0.9 * mean
