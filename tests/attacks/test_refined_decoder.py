"""White-box inversion that starts from a decoder's image."""

import pytest

from lightsplit.attacks import equip
from lightsplit.attacks.decoder import DecoderAttack
from lightsplit.attacks.refined_decoder import RefinedDecoder

pytestmark = pytest.mark.slow

EFFORT = {"most_pairs": 1_600, "steps": 200, "most_steps": 200, "width": 16}


def test_it_beats_the_decoder_that_it_starts_from(scene):
    made = scene("lightsplit-f", ratio=16)
    plain = equip(DecoderAttack, made.knowledge, **EFFORT).reconstruct(made.view)
    refined = equip(RefinedDecoder, made.knowledge, **EFFORT)
    images = refined.reconstruct(made.view)
    assert made.error(images) < 0.9 * made.error(plain)
    assert "before the descent" in refined.notes[-1]


def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene(noise=True)
    few = {**EFFORT, "steps": 40, "most_steps": 40}
    images = equip(RefinedDecoder, made.knowledge, **few).reconstruct(made.view)
    assert made.error(images) > 0.95 * trivial_error(made, ("mean-image",))


def test_it_needs_pairs_and_the_client(scene):
    made = scene()
    assert set(RefinedDecoder.needs) == {"pairs", "client"}
    assert equip(RefinedDecoder, made.knowledge) is not None
