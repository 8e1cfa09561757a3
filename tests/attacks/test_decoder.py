"""The decoder trained on true pairs."""

import pytest
import torch
from torch import nn

from lightsplit.attacks import ATTACKS, Pairs, equip
from lightsplit.attacks.decoder import EFFORTS, DecoderAttack, Effort
from lightsplit.attacks.decoder_networks import build_decoder

pytestmark = pytest.mark.slow

LITTLE = Effort(pairs=1_000, steps=60, width=16, blocks=1)
MORE = Effort(pairs=1_600, steps=300, width=24, blocks=1)


def decode(made, effort=MORE, **options):
    attack = equip(DecoderAttack, made.knowledge, effort=effort, **options)
    return attack, attack.reconstruct(made.view)


@pytest.mark.parametrize("image", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 15, 9)])
@pytest.mark.parametrize(
    "code",
    [(5,), (4, 4, 4), (3, 12, 12), (2, 8, 8), (2, 17, 17), (3, 40, 40), (7, 1, 1)],
)
def test_it_takes_codes_and_images_of_any_size(code, image):
    pairs = Pairs(
        torch.randn(12, *code), torch.randn(12, *code), torch.rand(12, *image)
    )
    network = build_decoder(pairs, width=4, blocks=1, seed=0)
    images = network(pairs.codes)
    assert images.shape == pairs.images.shape
    assert ((images >= 0) & (images <= 1)).all()


@pytest.mark.parametrize("activation", [(2, 4, 4), (3, 12, 12), (30,), (9, 4)])
def test_a_flat_code_is_read_through_the_estimated_activation(activation):
    pairs = Pairs(
        torch.randn(12, 6), torch.randn(12, *activation), torch.rand(12, 1, 8, 8)
    )
    network = build_decoder(pairs, width=4, blocks=1, seed=0)
    is_a_map = len(activation) == 3
    assert (network.stem.lift is not None) == is_a_map
    assert network(pairs.codes).shape == pairs.images.shape


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
    _, images = decode(made, MORE._replace(steps=700))
    assert made.error(images) < 0.002  # 27 dB; the best trivial attacker has 0.03


@pytest.mark.slow
def test_more_effort_does_not_make_it_worse(scene):
    made = scene("lightsplit-f", ratio=8)
    errors = [made.error(decode(made, effort)[1]) for effort in (LITTLE, MORE)]
    assert errors[1] < 1.05 * errors[0]


def test_the_same_seed_gives_the_same_images_and_two_seeds_of_r_do_not(scene):
    tiny = LITTLE._replace(pairs=100, steps=3)
    first, again, other = (
        decode(scene("lightsplit-f", ratio=8, seed=seed), tiny)[1] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_it_states_its_capacity(scene):
    attack, _ = decode(scene(), LITTLE._replace(pairs=100, steps=3))
    assert attack.parameters > 1_000
    assert f"{attack.parameters:,} parameters, trained on 100 pairs" in attack.notes[0]


def test_a_larger_budget_buys_more_of_everything():
    quick, short, full = (EFFORTS[name] for name in ("quick", "short", "full"))
    assert all(more > less for less, more in zip(quick, full, strict=True))
    assert all(a <= b <= c for a, b, c in zip(quick, short, full, strict=True))


def test_it_leaves_the_global_random_state_alone(scene):
    made = scene()
    before = torch.get_rng_state()
    decode(made, LITTLE._replace(pairs=100, steps=3))
    assert torch.equal(torch.get_rng_state(), before)
