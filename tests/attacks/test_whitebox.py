"""White-box inversion with the true head."""

import copy

import pytest
import torch
from torch import nn

from lightsplit.attacks import equip
from lightsplit.attacks.image_descent import code_error
from lightsplit.attacks.whitebox import EFFORTS, Effort, WhiteBox

pytestmark = pytest.mark.slow

LITTLE = Effort(steps=40, most_steps=40)
MORE = Effort(steps=150, most_steps=300)


def invert(made, effort=MORE, **options):
    return equip(WhiteBox, made.knowledge, **effort._asdict(), **options).reconstruct(
        made.view
    )


@pytest.mark.slow
def test_on_a_shallow_cut_it_beats_every_trivial_attacker_fivefold(
    scene, trivial_error
):
    made = scene()
    assert made.error(invert(made)) < 0.2 * trivial_error(made)


def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene(noise=True)
    assert made.error(invert(made, LITTLE)) > trivial_error(made, ("mean-image",))


@pytest.mark.slow
def test_it_works_through_the_projection(scene, trivial_error):
    made = scene("lightsplit-f", ratio=4)
    assert made.error(invert(made)) < trivial_error(made)


@pytest.mark.slow
def test_more_effort_does_not_make_it_worse(scene):
    made = scene()
    errors = [made.error(invert(made, effort)) for effort in (LITTLE, MORE)]
    assert errors[1] < 1.05 * errors[0]


def test_two_seeds_of_the_projection_give_different_images(scene):
    made = [scene("lightsplit-f", ratio=8, seed=seed) for seed in (1, 2)]
    assert not torch.equal(*(invert(each, Effort(3, 3)) for each in made))


def test_a_further_attempt_never_fits_the_code_worse(scene):
    made = scene()
    client = made.knowledge.client
    one, two = (invert(made, Effort(20, most)) for most in (20, 40))
    with torch.no_grad():
        errors = [code_error(client(images), made.view.codes) for images in (one, two)]
    assert (errors[1] <= errors[0]).all()


def test_behind_a_projection_its_rate_is_high_enough_to_arrive(scene):
    made = scene("lightsplit-f", ratio=4)
    attack = equip(WhiteBox, made.knowledge, steps=300, most_steps=600)
    images = attack.reconstruct(made.view)
    assert made.error(images) < 4e-4  # Adam at a rate of 0.03 reaches 8e-4
    assert not any("did not fit" in note for note in attack.notes)


def test_it_stops_when_every_code_fits(scene):
    made, seen = scene(), []
    attack = equip(WhiteBox, made.knowledge, steps=300, most_steps=4_800)
    attack.reconstruct(made.view, lambda done, _: seen.append(done))
    assert attack.converged is True
    assert attack.notes[0].startswith("converged: relative squared error of the code")
    assert len(seen) < 4_800


def test_a_code_that_no_image_has_is_doubted(scene):
    made = scene(noise=True)
    attack = equip(WhiteBox, made.knowledge, **LITTLE._asdict())
    attack.reconstruct(made.view)
    assert f"did not fit: {len(made.truth)} of {len(made.truth)}" in attack.notes[1]


def test_it_says_when_it_was_cut_short(scene):
    made = scene("lightsplit-f", ratio=2)
    attack = equip(WhiteBox, made.knowledge, steps=4, most_steps=8)
    attack.reconstruct(made.view)
    assert attack.converged is False


def test_an_image_does_not_depend_on_those_beside_it(scene, monkeypatch):
    made = scene()
    together = invert(made, Effort(5, 5))
    monkeypatch.setattr("lightsplit.attacks.whitebox.CHUNK", 30)
    torch.testing.assert_close(invert(made, Effort(5, 5)), together)


def test_the_client_is_left_as_it_was(scene):
    made = scene()
    client = made.knowledge.client.train()
    before = copy.deepcopy(client.state_dict())
    invert(made, Effort(3, 6))
    assert client.training
    assert all(torch.equal(before[k], v) for k, v in client.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in client.parameters())


def test_pixels_stay_in_range_even_for_a_code_of_zeros(scene):
    made = scene(head=nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU()))
    made.view.exchanges[0].request.code.values.zero_()
    images = invert(made, Effort(5, 10))
    assert ((images >= 0) & (images <= 1)).all()


def test_progress_ends_when_all_steps_are_done(scene):
    made, seen = scene(), []
    attack = equip(WhiteBox, made.knowledge, steps=3, most_steps=6)
    attack.reconstruct(made.view, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 9) for done in range(1, 10)]


def test_a_larger_budget_buys_more_of_everything():
    quick, short, full = (EFFORTS[name] for name in ("quick", "short", "full"))
    assert all(more > less for less, more in zip(quick, full, strict=True))
    assert all(a <= b <= c for a, b, c in zip(quick, short, full, strict=True))
