import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import ClientView, Disco

SHAPE, INPUT = (8, 4, 4), (1, 6, 6)


def disco(shape=SHAPE, input_shape=INPUT, **options):
    return Disco(CODECS.create("raw", shape=shape), input_shape, **options)


def view_of(activation, inputs):
    code = Code(activation)
    return ClientView(inputs, activation, code, None, None, activation)


@pytest.mark.parametrize("pruned", [0.25, 0.5, 0.9])
def test_about_the_asked_share_of_channels_is_dropped_for_each_sample(pruned):
    objective = disco(pruned=pruned)
    for layer in objective.pruner.parameters():
        layer.data.mul_(30)  # scores far apart: the mask is hard
    activation = torch.ones(20, *SHAPE) * torch.rand(20, 1, 1, 1)
    kept = objective.prune(activation) / activation
    assert kept.flatten(2).std(dim=2).max() < 1e-5  # a channel as a whole
    lost = (kept[:, :, 0, 0] <= 0.5).sum(dim=1)
    assert torch.equal(lost, torch.full((20,), int(pruned * 8)))


def test_nothing_is_changed_where_nothing_is_to_be_dropped():
    activation = torch.randn(3, *SHAPE)
    assert torch.equal(disco(pruned=0.0).prune(activation), activation)


def test_the_adversary_learns_and_the_pruner_works_against_it():
    objective = disco()
    activation, inputs = torch.randn(16, *SHAPE), torch.rand(16, *INPUT)
    activation.requires_grad_()
    objective(view_of(activation, inputs)).backward()
    assert activation.grad is None  # the head minimises the task loss alone

    def error_after(module, sign):
        rate = sign * 1e-3 / max(p.grad.norm() for p in module.parameters())
        before = [p.detach().clone() for p in module.parameters()]
        for p in module.parameters():
            p.data.sub_(p.grad, alpha=float(rate))
        with torch.no_grad():
            found = objective(view_of(activation, inputs)).item()
        for p, old in zip(module.parameters(), before, strict=True):
            p.data.copy_(old)
        return found

    now = objective(view_of(activation, inputs)).item()
    assert error_after(objective.adversary, 1) < now
    assert error_after(objective.pruner, 1) > now


def test_the_task_reaches_the_pruner_through_what_is_sent():
    objective = disco()
    objective.cover(torch.randn(4, *SHAPE)).activation.square().sum().backward()
    assert all(p.grad is not None for p in objective.pruner.parameters())
    assert all(p.grad is None for p in objective.adversary.parameters())


def test_activations_and_inputs_may_be_rows():
    objective = disco((12,), (7,))
    activation, inputs = torch.randn(5, 12), torch.rand(5, 7)
    assert objective.prune(activation).shape == (5, 12)
    assert objective(view_of(activation, inputs)).ndim == 0


def test_other_inputs_and_shares_are_refused():
    with pytest.raises(ConfigError, match="one tensor of numbers"):
        disco(input_shape=None)
    with pytest.raises(ConfigError, match="from 0 to below 1"):
        disco(pruned=1.0)


def test_it_has_no_running_statistics_that_a_measurement_would_change():
    assert not any(isinstance(m, nn.BatchNorm2d) for m in disco().modules())
