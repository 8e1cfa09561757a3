"""Stacked layers: row p of the batch meets the weights of network p and no others."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lightsplit.attacks.unsplit_layers import stack
from lightsplit.errors import AuditError
from lightsplit.models import CUTS, MODELS

pytestmark = pytest.mark.slow

EVERY_CUT = [(model, cut) for model in MODELS.names() for cut in CUTS[model].names]
COUNT = 3


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 3),
    size=st.tuples(st.integers(3, 7), st.integers(3, 7)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    has_bias=st.booleans(),
    rests=st.booleans(),
)
def test_a_stacked_convolution_is_torch_s_own_for_every_problem(
    *, channels, size, kernel, padding, stride, has_bias, rests
):
    options = {"padding": padding, "stride": stride, "bias": has_bias}
    layers = [nn.Conv2d(channels, 2, kernel, **options).double() for _ in range(COUNT)]
    images = torch.randn(COUNT, channels, *size, dtype=torch.double)
    images.requires_grad_(not rests)
    stacked = stack(layers)
    apart = torch.cat([layer(images[p : p + 1]) for p, layer in enumerate(layers)])
    torch.testing.assert_close(stacked(images), apart)
    seeds = torch.randn_like(apart)
    inputs = [] if rests else [images]
    ours = torch.autograd.grad(stacked(images), [*inputs, stacked.weight], seeds)
    theirs = torch.autograd.grad(apart, [*inputs, *(n.weight for n in layers)], seeds)
    torch.testing.assert_close(ours[-1], torch.stack(theirs[len(inputs) :]))
    torch.testing.assert_close(ours[:-1], theirs[: len(inputs)])


@pytest.mark.parametrize(("model", "cut"), EVERY_CUT)
def test_every_head_of_the_zoo_can_be_stacked(model, cut):
    zoos = [MODELS.create(model, cut=cut) for _ in range(COUNT)]
    heads = [zoo.split().head.eval() for zoo in zoos]
    images = torch.rand(COUNT, *zoos[0].input_shape)
    ours = stack(heads)(images)
    apart = torch.cat([head(images[p : p + 1]) for p, head in enumerate(heads)])
    torch.testing.assert_close(ours, apart, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cut", CUTS["tinycnn"].names)
def test_gradients_of_stacked_heads_are_those_of_each_head(cut):
    heads = [MODELS.create("tinycnn", cut=cut).split().head.eval() for _ in "abc"]
    stacked = stack(heads)
    images = torch.rand(COUNT, 1, 8, 8)
    stacked(images).square().sum().backward()
    for row, head in enumerate(heads):
        head(images[row : row + 1]).square().sum().backward()
        own = dict(head.named_parameters())
        for name, parameter in stacked.named_parameters():
            torch.testing.assert_close(
                parameter.grad[row], own[name].grad, rtol=1e-4, atol=1e-4
            )


def test_linear_layers_are_stacked_too():
    heads = [nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False)) for _ in "abc"]
    images = torch.rand(COUNT, 1, 2, 2)
    apart = torch.cat([head(images[p : p + 1]) for p, head in enumerate(heads)])
    stacked = stack(heads)
    torch.testing.assert_close(stacked(images), apart)
    assert len(list(stacked.parameters())) == 1


def test_the_networks_that_were_stacked_stay_as_they_were():
    heads = [nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()) for _ in "ab"]
    stack(heads)
    assert type(heads[0][0]) is nn.Conv2d
    assert heads[0].training


@pytest.mark.parametrize(
    "layer",
    [
        nn.PReLU(),
        nn.ConvTranspose2d(1, 1, 3),
        nn.Conv2d(1, 1, 3, padding="same"),
        nn.Conv2d(1, 1, 3, padding=1, padding_mode="circular"),
        nn.BatchNorm2d(1, track_running_stats=False),
    ],
)
def test_a_layer_that_cannot_be_stacked_is_refused_by_name(layer):
    with pytest.raises(AuditError, match=type(layer).__name__):
        stack([nn.Sequential(layer), nn.Sequential(layer)])
