"""UnSplit's search is the released one, and stacked problems do not know each other."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from lightsplit import seeding
from lightsplit.attacks.unsplit_clones import Observed
from lightsplit.attacks.unsplit_loop import Schedule, invert
from lightsplit.codecs import CODECS
from lightsplit.errors import AuditError

pytestmark = pytest.mark.slow

SHAPE = (2, 6, 5)
CUT = (3, 4, 3)
SHORT = Schedule(main_iterations=3, inner_iterations=4)


def head():
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU())


def search(observed, **options):
    options = {"schedule": SHORT, **options}
    return invert(observed, head, image_shape=SHAPE, **options)


def released(target, clone):
    """The loop of the authors' code for one image, written as they describe it."""
    guess = torch.full((1, *SHAPE), 0.5, requires_grad=True)
    on_guess = torch.optim.Adam([guess], lr=1e-3, amsgrad=True)
    on_clone = torch.optim.Adam(clone.parameters(), lr=1e-3, amsgrad=True)
    for _ in range(SHORT.main_iterations):
        for _ in range(SHORT.inner_iterations):
            loss = mse_loss(clone(guess), target) + 0.1 * variation(guess)
            step(on_guess, loss + guess.square().mean())
        for _ in range(SHORT.inner_iterations):
            step(on_clone, mse_loss(clone(guess), target))
    return guess.detach()


def variation(images):
    count, channels, height, width = images.shape
    down = (images[:, :, 1:] - images[:, :, :-1]).square().sum()
    along = (images[..., 1:] - images[..., :-1]).square().sum()
    return (
        down / (channels * (height - 1) * width)
        + along / (channels * height * (width - 1))
    ) / count


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def first_clone(seed=0):
    with seeding.scope(seed, "unsplit", "clone", 0):
        return head()


def test_one_problem_gives_the_same_as_the_released_loop():
    target = torch.rand(1, *CUT)
    expected = released(target, first_clone())
    torch.testing.assert_close(search([Observed(target)])[0], expected)
    assert (expected - 0.5).abs().max() > 1e-3


def test_carry_over_gives_the_same_as_the_released_loop_image_by_image():
    targets, clone = torch.rand(3, *CUT), first_clone()
    expected = torch.cat([released(target[None], clone) for target in targets])
    found = search([Observed(targets)], carry_over=True)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(search([Observed(targets)])[0][1:], found[1:], atol=1e-4)


def test_a_problem_comes_out_the_same_whatever_is_stacked_beside_it():
    targets = torch.rand(4, *CUT)
    alone = search([Observed(targets[:1])])[0]
    torch.testing.assert_close(search([Observed(targets)])[0][:1], alone)


@pytest.mark.parametrize("carry_over", [False, True])
def test_victims_with_different_codecs_can_be_searched_together(carry_over):
    projection = CODECS.create("lightsplit-f", shape=CUT, ratio=3)
    learned = CODECS.create("learned-1x1", shape=CUT, ratio=3)
    victims = [
        Observed(torch.rand(2, *CUT)),
        Observed(torch.randn(2, 12), projection, seed=1),
        Observed(torch.rand(2, 1, 4, 3), learned, seed=2),
    ]
    together = search(victims, carry_over=carry_over)
    apart = [search([victim], carry_over=carry_over)[0] for victim in victims]
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-5)


def test_a_learned_encoder_is_cloned_and_the_one_given_is_left_alone():
    codec = CODECS.create("learned-1x1", shape=CUT, ratio=3)
    before = [parameter.clone() for parameter in codec.encoder.parameters()]
    rows = torch.rand(1, 1, 4, 3).expand(2, -1, -1, -1)
    images = search([Observed(rows, codec)])[0]
    assert not torch.equal(images[0], images[1])
    assert all(map(torch.equal, before, codec.encoder.parameters()))


def test_another_seed_gives_other_images():
    target = torch.rand(1, *CUT)
    first, second = (search([Observed(target, seed=n)])[0] for n in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("carry_over", "total"), [(False, 3), (True, 6)])
def test_progress_counts_the_main_iterations(carry_over, total):
    seen = []
    search(
        [Observed(torch.rand(2, *CUT))],
        carry_over=carry_over,
        progress=lambda *step: seen.append(step),
    )
    assert seen == [(n, total) for n in range(1, total + 1)]


def test_carry_over_of_unequal_victims_is_refused():
    with pytest.raises(
        AuditError, match=r"same number of images of each victim, got \[1, 2\]"
    ):
        search([Observed(torch.rand(n, *CUT)) for n in (1, 2)], carry_over=True)


def test_a_head_without_weights_is_refused():
    with pytest.raises(AuditError, match="this head has none"):
        invert([Observed(torch.rand(1, *SHAPE))], nn.ReLU, image_shape=SHAPE)
