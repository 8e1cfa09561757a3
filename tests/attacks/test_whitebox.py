"""White-box inversion with the true head."""

import copy

import pytest
import torch
from torch import nn

from lightsplit.attacks import equip
from lightsplit.attacks.whitebox import (
    EFFORTS,
    Effort,
    WhiteBox,
    code_error,
    total_variation,
)

pytestmark = pytest.mark.slow

LITTLE = Effort(steps=40, restarts=1)
MORE = Effort(steps=200, restarts=2)


def invert(made, effort=MORE, **options):
    return equip(WhiteBox, made.knowledge, effort=effort, **options).reconstruct(
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
    assert not torch.equal(*(invert(each, Effort(3, 1)) for each in made))


def test_a_further_restart_never_fits_the_code_worse(scene):
    made = scene()
    client = made.knowledge.client
    one, two = (invert(made, Effort(20, restarts)) for restarts in (1, 2))
    with torch.no_grad():
        errors = [code_error(client(images), made.view.codes) for images in (one, two)]
    assert (errors[1] <= errors[0]).all()


def test_an_image_does_not_depend_on_those_beside_it(scene, monkeypatch):
    made = scene()
    together = invert(made, Effort(5, 1))
    monkeypatch.setattr("lightsplit.attacks.whitebox.CHUNK", 30)
    torch.testing.assert_close(invert(made, Effort(5, 1)), together)


def test_the_client_is_left_as_it_was(scene):
    made = scene()
    client = made.knowledge.client.train()
    before = copy.deepcopy(client.state_dict())
    invert(made, Effort(3, 2))
    assert client.training
    assert all(torch.equal(before[k], v) for k, v in client.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in client.parameters())


def test_pixels_stay_in_range_even_for_a_code_of_zeros(scene):
    made = scene(head=nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU()))
    made.view.exchanges[0].request.code.values.zero_()
    images = invert(made, Effort(5, 2))
    assert ((images >= 0) & (images <= 1)).all()


def test_progress_ends_when_all_steps_are_done(scene):
    made, seen = scene(), []
    attack = equip(WhiteBox, made.knowledge, effort=Effort(4, 2))
    attack.reconstruct(made.view, lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]


def test_total_variation_is_zero_for_a_flat_image_and_not_for_a_checkerboard():
    board = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(1, 1, 4, 4)
    assert total_variation(torch.full((1, 1, 8, 8), 0.3)).item() == 0
    assert total_variation(board).item() == pytest.approx(2, abs=0.03)


def test_a_larger_budget_buys_more_of_everything():
    quick, short, full = (EFFORTS[name] for name in ("quick", "short", "full"))
    assert all(more > less for less, more in zip(quick, full, strict=True))
    assert all(a <= b <= c for a, b, c in zip(quick, short, full, strict=True))
