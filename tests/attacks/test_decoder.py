"""The decoder trained on true pairs."""

import re

import pytest
import torch
from torch import nn

from lightsplit.attacks import ATTACKS, equip
from lightsplit.attacks.decoder import EFFORTS, DecoderAttack
from lightsplit.attacks.decoder_training import Effort, TrainedDecoder

pytestmark = pytest.mark.slow

LITTLE = Effort(most_pairs=1_000, steps=60, most_steps=60, width=16, blocks=1)
MORE = Effort(most_pairs=1_600, steps=300, most_steps=300, width=24, blocks=1)
TINY = LITTLE._replace(most_pairs=100, steps=3, most_steps=3)


def decode(made, effort=MORE, **options):
    attack = equip(DecoderAttack, made.knowledge, **effort._asdict(), **options)
    return attack, attack.reconstruct(made.view)


@pytest.mark.slow
def test_on_a_shallow_cut_it_beats_every_trivial_attacker_fivefold(
    scene, trivial_error
):
    made = scene()
    _, images = decode(made)
    assert made.error(images) < 0.2 * trivial_error(made)


@pytest.mark.slow
def test_on_a_projected_code_it_beats_the_linear_estimate(scene):
    made = scene("lightsplit-f", ratio=16)
    linear = equip(ATTACKS.get("linear"), made.knowledge).reconstruct(made.view)
    _, images = decode(made)
    assert made.error(images) < 0.95 * made.error(linear.clamp(0, 1))


@pytest.mark.slow
def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene(noise=True)
    _, images = decode(made, LITTLE)
    assert made.error(images) > 0.95 * trivial_error(made, ("mean-image",))


@pytest.mark.slow
def test_an_invertible_head_at_ratio_1_hides_nothing(scene):
    head = nn.Conv2d(1, 4, 2, stride=2)  # each patch of four pixels to four values
    nn.init.orthogonal_(head.weight)
    made = scene(head=head)
    _, images = decode(made, MORE._replace(steps=700, most_steps=700))
    assert made.error(images) < 0.002  # 27 dB; the best trivial attacker has 0.03


@pytest.mark.slow
def test_more_effort_does_not_make_it_worse(scene):
    made = scene("lightsplit-f", ratio=8)
    errors = [made.error(decode(made, effort)[1]) for effort in (LITTLE, MORE)]
    assert errors[1] < 1.05 * errors[0]


def test_the_same_seed_gives_the_same_images_and_two_seeds_of_r_do_not(scene):
    first, again, other = (
        decode(scene("lightsplit-f", ratio=8, seed=seed), TINY)[1] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_it_states_its_capacity_and_that_it_was_cut_short(scene):
    attack, _ = decode(scene(), TINY)
    assert attack.parameters > 1_000
    assert attack.converged is False
    assert attack.notes[0].startswith("not converged after 3 steps")
    assert f"{attack.parameters:,} weights, 100 pairs" in attack.notes[0]


def test_it_trains_until_more_steps_do_not_help(scene):
    effort = MORE._replace(steps=100, most_steps=6_400, most_pairs=400, width=8)
    attack, _ = decode(scene("lightsplit-f", ratio=16), effort)
    assert attack.converged is True
    assert attack.notes[0].startswith("converged after")


@pytest.mark.parametrize("name", ["decoder", "labelled-decoder"])
def test_a_thorough_one_compares_itself_with_a_decoder_of_twice_the_effort(name, scene):
    made = scene("lightsplit-f", ratio=8)
    options = {"steps": 3, "most_steps": 3, "width": 4, "most_pairs": 100}
    plain, attack = (
        equip(ATTACKS.get(name), made.knowledge, thorough=thorough, **options)
        for thorough in (False, True)
    )
    plain.train()
    attack.train()
    said = re.search(
        r"converged: twice the width and steps \(([\d,]+) weights, 6 steps\) change "
        r"\w+ on held-out pairs by ([+-][\d.]+)",
        attack.notes[1],
    )
    assert int(said[1].replace(",", "")) > plain.parameters
    gain = float(said[2])
    assert attack.converged is (gain <= 0.01)
    assert attack.notes[1].startswith("not ") is not attack.converged


def test_only_the_full_budget_is_thorough_by_itself(scene):
    known = scene().knowledge
    for budget, thorough in (("quick", False), ("short", False), ("full", True)):
        assert equip(DecoderAttack, known, budget=budget).is_thorough is thorough
    assert not equip(DecoderAttack, known, budget="full", thorough=False).is_thorough


def test_a_gain_of_more_than_a_hundredth_shows_that_it_had_not_converged(scene):
    attack = equip(DecoderAttack, scene().knowledge)
    network = equip(DecoderAttack, scene().knowledge, steps=1, most_steps=1).train()[0]
    first = TrainedDecoder(network, 0.5, 10, 0.0)
    for doubled, converged in ((0.505, True), (0.515, False)):
        second = TrainedDecoder(network, doubled, 20, 0.0)
        assert attack._better(first, second) is second
        assert attack.converged is converged


def test_the_decoder_of_published_audits_is_a_matter_of_options(scene):
    """Eight residual blocks of 64 channels, weight decay, and a cosine."""
    made = scene("lightsplit-f", ratio=16)
    options = {"blocks": 8, "width": 64, "lr": 1e-3, "steps": 3, "most_steps": 3}
    for name in ("decoder", "labelled-decoder"):
        attack = equip(ATTACKS.get(name), made.knowledge, most_pairs=64, **options)
        network = attack.train().network
        assert len(network.trunk.blocks) == 8
        assert network.trunk.blocks[0].layers[0].weight.shape == (64, 64, 3, 3)


def test_a_larger_budget_buys_more_of_everything():
    quick, short, full = (EFFORTS[name][:-1] for name in ("quick", "short", "full"))
    assert all(more > less for less, more in zip(quick, full, strict=True))
    assert all(a <= b <= c for a, b, c in zip(quick, short, full, strict=True))


def test_it_leaves_the_global_random_state_alone(scene):
    made = scene()
    before = torch.get_rng_state()
    decode(made, TINY)
    assert torch.equal(torch.get_rng_state(), before)
