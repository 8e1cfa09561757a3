"""White-box inversion with a prior: the head is never worth less than not having it."""

import pytest
import torch

from lightsplit.attacks import equip
from lightsplit.attacks.decoder import DecoderAttack
from lightsplit.attacks.decoder_loss import similarity
from lightsplit.attacks.learned_descent import LearnedDescent, moved
from lightsplit.attacks.refined_decoder import RefinedDecoder

EFFORT = {"most_pairs": 1_600, "steps": 150, "most_steps": 150, "width": 16}
REFINED = {**EFFORT, "closer_steps": 50, "learnt_steps": 100}
CODES = {
    "lightsplit-f": {"ratio": 16},
    "lightsplit-b": {"ratio": None, "bits": 16},
}


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODES)
def test_knowing_the_head_as_well_is_never_worth_less(scene, codec):
    made = scene(codec, **CODES[codec])
    plain = equip(DecoderAttack, made.knowledge, **EFFORT).reconstruct(made.view)
    images = equip(RefinedDecoder, made.knowledge, **REFINED).reconstruct(made.view)
    assert made.error(images) < 1.02 * made.error(plain)
    alike = [float(similarity(each, made.truth)) for each in (plain, images)]
    assert alike[1] > alike[0] - 0.01
    if codec == "lightsplit-f":
        assert made.error(images) < 0.9 * made.error(plain)


@pytest.mark.slow
def test_where_the_head_says_nothing_the_decoder_attacks_alone(scene):
    made = scene(noise=True)  # pairs whose codes the head never gives
    few = {
        **REFINED,
        "steps": 40,
        "most_steps": 40,
        "closer_steps": 5,
        "learnt_steps": 20,
    }
    attack = equip(RefinedDecoder, made.knowledge, **few, near=0.0, tv=0.0)
    plain = equip(DecoderAttack, made.knowledge, **{**EFFORT, "steps": 40})
    images = attack.reconstruct(made.view)
    assert any("held-out pairs" in note for note in attack.notes)
    assert made.error(images) < 1.05 * made.error(plain.reconstruct(made.view))


def test_a_descent_that_has_learnt_nothing_leaves_an_image_as_it_is(scene):
    made = scene()
    descent = LearnedDescent(made.knowledge.client, 1)
    torch.testing.assert_close(descent(made.view.codes, made.truth), made.truth)


def test_moved_images_have_the_same_pixels_elsewhere():
    images = torch.rand(16, 1, 28, 28)
    found = moved(images)
    assert not torch.equal(found, images)
    torch.testing.assert_close(
        found.flatten(1).sort().values, images.flatten(1).sort().values
    )


def test_it_needs_pairs_and_the_client(scene):
    made = scene()
    assert set(RefinedDecoder.needs) == {"pairs", "client"}
    assert equip(RefinedDecoder, made.knowledge) is not None
