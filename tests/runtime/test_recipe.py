"""Learning rates, clipping and accumulation: at both ends, as without a cut."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.errors import ConfigError
from lightsplit.runtime import Pace, Recipe, Side

STEPS = 6


def rates(steps=10, **options):
    recipe = Recipe(**options)
    return [recipe.rate(place, steps) for place in range(steps)]


def test_a_constant_rate_stays():
    assert rates(schedule="constant") == [1.0] * 10


def test_the_warm_up_rises_to_the_full_rate():
    assert rates(schedule="constant", warm_up=4)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_steps_drop_at_their_shares_of_the_run():
    found = rates(schedule="step", decay=0.5, drops=(0.3, 0.8))
    assert found == [1.0] * 3 + [0.5] * 5 + [0.25] * 2


def test_a_cosine_falls_from_one_to_almost_nothing():
    found = rates(1000, schedule="cosine")
    assert found[0] == 1.0
    assert found[500] == pytest.approx(0.5)
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < 1e-4


def test_the_cosine_begins_after_the_warm_up():
    found = rates(schedule="cosine", warm_up=4)
    assert found[4] == 1.0
    assert found[7] == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.5)))


@pytest.mark.parametrize(
    "bad", [{"schedule": "linear"}, {"warm_up": -1}, {"accumulate": 0}]
)
def test_an_impossible_recipe_is_refused(bad):
    with pytest.raises(ConfigError):
        Recipe(**bad)


def unsplit(model, optimizer, batches, recipe):
    """Train the whole model in the usual way: one turn of all batches."""
    full = [group["lr"] for group in optimizer.param_groups]
    groups = math.ceil(len(batches) / recipe.accumulate)
    for number in range(groups):
        begin = number * recipe.accumulate
        group = batches[begin : begin + recipe.accumulate]
        optimizer.zero_grad()
        for inputs, labels in group:
            cross_entropy(model(inputs), labels).backward()
        for parameter in model.parameters():
            parameter.grad /= len(group)
        place = begin + len(group) - 1
        for one, rate in zip(optimizer.param_groups, full, strict=True):
            one["lr"] = rate * recipe.rate(place, len(batches))
        optimizer.step()


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe("cosine", warm_up=2),
        Recipe("step", drops=(0.5,)),
        Recipe(accumulate=2),
        Recipe("cosine", accumulate=4),
    ],
    ids=str,
)
@pytest.mark.parametrize("topology", ["u", "vanilla"])
def test_a_split_run_changes_the_weights_as_the_unsplit_one(
    recipe, topology, pair, make_network, make_batches
):
    batches, model = make_batches(STEPS), make_network()
    ours = pair("raw", topology=topology)
    ours.client.recipe = ours.server.recipe = recipe
    ours.client.pace = ours.server.pace = Pace(0, STEPS, 0, STEPS)
    for inputs, labels in batches:
        ours.client.step(inputs, labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    unsplit(model, optimizer, batches, recipe)
    for ours_, theirs in zip(ours.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours_, theirs)


def test_nothing_changes_within_a_group(pair, make_batches):
    ours = pair("raw")
    ours.client.recipe = ours.server.recipe = Recipe(accumulate=3)
    ours.client.pace = ours.server.pace = Pace(0, 5, 0, 5)
    changed = []
    for inputs, labels in make_batches(5):
        before = [p.detach().clone() for p in ours.model.parameters()]
        ours.client.step(inputs, labels)
        after = list(ours.model.parameters())
        equal = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
        changed.append(not all(equal))
    assert changed == [False, False, True, False, True]  # the turn ends with a group


@pytest.fixture
def side():
    torch.manual_seed(0)
    return Side({"layer": nn.Linear(3, 1)}, lambda ps: torch.optim.SGD(ps, lr=1.0))


def moved(side, gradient, **options):
    weight = side.modules["layer"].weight
    before = weight.detach().clone()
    side.zero_grad()
    weight.grad = torch.full_like(weight, gradient)
    side.update(**options)
    return float((before - weight.detach()).norm())


def test_a_long_gradient_is_shortened_and_a_short_one_is_not(side):
    assert moved(side, 100.0, clip=0.5) == pytest.approx(0.5, rel=1e-4)
    assert moved(side, 0.01, clip=0.5) == pytest.approx(0.01 * math.sqrt(3), rel=1e-3)


def test_clipping_leaves_the_gradient_that_a_detector_reads(side):
    moved(side, 100.0, clip=0.5)
    assert float(side.modules["layer"].weight.grad[0, 0]) == 100.0


def test_gradients_of_a_turn_that_was_left_are_forgotten(side):
    weight = side.modules["layer"].weight
    for begins, gradient in ((True, 50.0), (True, 1.0)):
        side.zero_grad()
        weight.grad = torch.full_like(weight, gradient)
        side.hold_gradients(begins=begins)
    assert moved(side, 3.0, group=2) == pytest.approx(2 * math.sqrt(3))


def test_without_a_run_every_step_is_an_update_at_the_last_rate(pair, make_batches):
    ours = pair("raw")
    ours.client.recipe = ours.server.recipe = Recipe("cosine", accumulate=4)
    weights = [p for p in ours.model.parameters() if p.ndim > 1]
    before = [p.detach().clone() for p in weights]
    ours.client.step(*make_batches(1)[0])
    assert not any(torch.equal(a, b) for a, b in zip(before, weights, strict=True))
