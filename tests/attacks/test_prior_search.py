"""The search among the images of a generative prior."""

import pytest
import torch

from lightsplit.attacks import ATTACKS, equip, silent
from lightsplit.attacks.image_prior import ImagePrior, train_prior
from lightsplit.attacks.latent_search import WORKERS, by_gradient, without_gradient
from lightsplit.attacks.prior_search import EFFORTS, PriorSearch
from lightsplit.errors import MissingExtraError

pytestmark = pytest.mark.slow

LITTLE = {"prior_steps": 400, "steps": 120, "trials": 60}


def search(made, **options):
    attack = equip(PriorSearch, made.knowledge, **{**LITTLE, **options})
    return attack, attack.reconstruct(made.view)


def square(latents):
    """A client and prior in one: the latents themselves."""
    return latents


def test_on_a_raw_shallow_cut_it_beats_every_trivial_attacker(scene, trivial_error):
    made = scene()
    attack, images = search(made, prior_steps=1_000, steps=200)
    assert images.shape == made.truth.shape
    assert made.error(images) < trivial_error(made)
    assert "searched by gradients" in attack.notes[0]


def test_on_noise_it_beats_no_mean_image(scene, trivial_error):
    made = scene("lightsplit-f", ratio=16, noise=True)
    _, images = search(made, prior_steps=100, steps=40)
    assert made.error(images) > trivial_error(made, ("mean-image",))


def test_bits_are_searched_without_gradients_and_each_code_once(scene):
    made = scene("lightsplit-b", ratio=None, bits=8)
    attack, images = search(made)
    codes = made.view.codes
    distinct, row_of = torch.unique(codes, dim=0, return_inverse=True)
    assert attack.notes[0].startswith(
        f"{len(distinct)} distinct codes searched without"
    )
    for row in range(len(distinct)):
        same = images[row_of == row]
        assert torch.equal(same, same[:1].expand_as(same))
    dealt_out = images.roll(1, dims=0)  # plausible too, but of other codes
    assert made.error(images) < 0.9 * made.error(dealt_out)


def test_the_same_seed_finds_the_same_images(scene):
    made = scene("lightsplit-b", ratio=None, bits=4)
    few = {"prior_steps": 20, "trials": 2 * WORKERS}
    assert torch.equal(search(made, **few)[1], search(made, **few)[1])
    assert not torch.equal(search(made, **few)[1], search(made, seed=1, **few)[1])


def test_both_searches_find_a_known_answer():
    codes = torch.tensor([[0.5, -1.0], [2.0, 0.1]])
    starts = torch.zeros(3, 2, 2)
    starts[1] = 0.3
    by_slope = by_gradient(square, codes, starts, 200)
    assert (by_slope - codes).abs().max() < 0.05
    found = without_gradient(square, codes, starts, 200, seed=0)
    assert (found - codes).abs().max() < 0.5


def test_a_prior_learns_images_of_any_size():
    torch.manual_seed(0)
    for shape in ((1, 7, 9), (3, 8, 8)):
        images = torch.rand(40, *shape).round()
        first = ImagePrior(shape, 6)
        prior = train_prior(images, latent=6, steps=80, seed=0, progress=silent)
        made, before = (net(net.latents_of(images)) for net in (prior, first))
        assert made.shape == images.shape
        error, untrained = ((x - images).square().mean() for x in (made, before))
        assert error < 0.9 * untrained


def test_without_nevergrad_bits_are_refused_in_one_sentence(scene, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nevergrad", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lightsplit\[prior\]'"):
        search(scene("lightsplit-b", ratio=None, bits=4), prior_steps=1)


def test_a_larger_budget_buys_more_of_everything():
    quick, short, full = (EFFORTS[name] for name in ("quick", "short", "full"))
    assert all(a < b < c for a, b, c in zip(quick, short, full, strict=True))
    assert ATTACKS.get("prior-search") is PriorSearch
