"""Gradients of a head's weights, inverted: what few can have, and what it tells."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lightsplit.attacks import ATTACKS, Exchange, ServerView, equip
from lightsplit.attacks.gradient_problem import label_of
from lightsplit.attacks.head_steps import HeadSteps
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import AuditError
from lightsplit.protocol import CodeMessage, OutputMessage, Wire

COUNT = 3
MORE = {
    "dlg": {"steps": 5},
    "idlg": {"steps": 5},
    "inverting-gradients": {"steps": 100},
}
FORMS = {"dlg": "adaptive", "idlg": "", "inverting-gradients": "adaptive"}


def smooth_head():
    """Return a head with slopes everywhere, as the attacks' authors use."""
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.Sigmoid(), nn.Conv2d(6, 6, 3), nn.Sigmoid()
    )


def with_steps(made, *, is_told=False, noise=False):
    """Return the scene of a few images, with the gradients of a step of each."""
    torch.manual_seed(6)
    client = made.knowledge.client
    codes = made.view.codes[:COUNT]
    tail = nn.Linear(codes[0].numel(), 10)
    rest = nn.Sequential(nn.Flatten(), nn.ReLU(), tail)
    weights = {name: w for name, w in client.named_parameters() if w.requires_grad}
    rows = []
    for image, label in zip(
        made.truth[:COUNT, None], made.labels[:COUNT, None], strict=True
    ):
        code = client(image)
        loss = cross_entropy(rest(code), label)
        asked = [code, tail.weight, *weights.values()]
        rows.append(torch.autograd.grad(loss, asked))
    at_the_code, last, *others = [torch.stack(each) for each in zip(*rows, strict=True)]
    if noise:
        others = [torch.randn_like(each) for each in others]
        at_the_code = torch.randn_like(at_the_code)
    steps = HeadSteps(
        gradients=dict(zip(weights, others, strict=True)),
        at_the_code=at_the_code.squeeze(1),
        tail=None if is_told else last,
        labels=made.labels[:COUNT] if is_told else None,
        rest=rest,
    )
    codec = CODECS.create("raw", shape=tuple(codes.shape[1:]), ratio=1)
    sent = CodeMessage(0, 0, Code(codes), is_training=False)
    reply = OutputMessage(0, 0, Code(torch.zeros(COUNT, 1)))
    made.view = ServerView(made.view.contract, Wire(codec), (Exchange(sent, reply),))
    made.truth = made.truth[:COUNT]
    made.knowledge = replace(
        made.knowledge, labels=made.labels[:COUNT], head_steps=lambda: steps
    )
    return made


def with_small_gradients(made):
    """Return a scene whose gradients are those of a network that is sure."""
    steps = with_steps(made).knowledge.head_steps()
    small = replace(
        steps,
        gradients={name: 1e-4 * each for name, each in steps.gradients.items()},
        at_the_code=1e-4 * steps.at_the_code,
    )
    made.knowledge = replace(made.knowledge, head_steps=lambda: small)
    return made


def attacked(made, name, form=None, **options):
    attack = equip(
        ATTACKS.get(name),
        made.knowledge,
        form=FORMS[name] if form is None else form,
        **(MORE[name] | options),
    )
    return attack.reconstruct(made.view)


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("is_told", [False, True])
def test_gradients_of_a_shallow_head_give_the_image_away(
    scene, trivial_error, name, is_told
):
    made = with_steps(scene(head=smooth_head()), is_told=is_told)
    assert made.error(attacked(made, name)) < 0.5 * trivial_error(made)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dlg", "inverting-gradients"])
def test_small_gradients_give_the_image_away_as_well(scene, trivial_error, name):
    made = with_small_gradients(scene(head=smooth_head()))
    assert made.error(attacked(made, name)) < 0.5 * trivial_error(made)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dlg", "inverting-gradients"])
def test_as_published_it_finds_an_image_through_the_whole_network(
    scene, trivial_error, name
):
    made = with_steps(scene(head=smooth_head()))
    found = attacked(made, name, "published")
    errors = (found.clamp(0, 1) - made.truth).square().flatten(1).mean(dim=1)
    assert float(errors.min()) < 0.1 * trivial_error(made)  # DLG diverges on some


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_gradients_of_noise_give_nothing_away(scene, trivial_error, name):
    made = with_steps(scene(head=smooth_head()), noise=True)
    images = attacked(made, name, steps=4 if "dlg" in name else 40).clamp(0, 1)
    assert made.error(images) > trivial_error(made, ("mean-image",))


@pytest.mark.slow
def test_more_steps_do_not_make_it_worse(scene):
    made = with_steps(scene(head=smooth_head()))
    few, many = (
        made.error(attacked(made, "inverting-gradients", steps=steps))
        for steps in (20, 100)
    )
    assert many < 1.05 * few


def test_the_published_forms_run_through_the_whole_network(scene):
    made = with_steps(scene(head=smooth_head()))
    for name in ("dlg", "inverting-gradients"):
        images = attacked(made, name, "published", steps=2)
        assert images.shape == made.truth.shape
        assert torch.isfinite(images).all()


def test_the_last_layer_tells_the_label_of_a_single_image(scene):
    made = with_steps(scene(head=smooth_head()))
    found = label_of(made.knowledge.head_steps().tail)
    assert torch.equal(found, made.labels[:COUNT])


def test_without_a_shared_head_there_is_nothing_to_invert(scene):
    made = scene()
    assert equip(ATTACKS.get("dlg"), made.knowledge, form="adaptive") is None


def test_idlg_without_a_tail_is_refused(scene):
    made = with_steps(scene(head=smooth_head()))
    steps = replace(made.knowledge.head_steps(), tail=None)
    made.knowledge = replace(made.knowledge, head_steps=lambda: steps)
    with pytest.raises(AuditError, match="reads the label off a linear tail"):
        attacked(made, "idlg")


def test_every_image_needs_a_step_of_its_own(scene):
    made = scene(head=smooth_head())
    steps = with_steps(scene(head=smooth_head())).knowledge.head_steps
    made.knowledge = replace(made.knowledge, head_steps=steps)
    with pytest.raises(AuditError, match="a step of each of 100 images, got 3"):
        attacked(made, "dlg")
