"""A learner's state determines how it continues."""

import pytest
import torch
from torch import nn

from lightsplit.attacks.learner import Learner, descend, load_states, states
from lightsplit.errors import RunError


def learner(width=3):
    return Learner(nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width)), 0.1)


def step(one):
    inputs = torch.arange(8.0).view(4, 2)
    descend([one], [(one.network(inputs) - inputs.sum()).square().sum()])


def test_an_attack_that_loads_a_state_continues_the_same():
    first, second = learner(), learner()
    step(first)
    load_states({"a": second}, states({"a": first}))
    step(first)
    step(second)
    for name, tensor in first.state().items():
        assert torch.equal(tensor, second.state()[name]), name


def test_only_the_learners_that_are_named_change():
    first, second = learner(), learner()
    resting = {name: tensor.clone() for name, tensor in second.state().items()}
    inputs = torch.rand(4, 2)
    descend([first], [(first.network(inputs) * second.network(inputs)).sum()])
    for name, tensor in second.network.named_parameters():
        assert torch.equal(tensor, resting[name])
        assert tensor.grad is None


def test_a_gradient_can_be_given_in_place_of_a_loss():
    first, second = learner(), learner()
    second.load(first.state())
    inputs = torch.rand(4, 2)
    descend([first], [2 * first.network(inputs).square().sum()])
    outputs = second.network(inputs)
    descend([second], [outputs], [4 * outputs.detach()])
    torch.testing.assert_close(first.state(), second.state())


def test_the_state_of_another_network_is_refused():
    with pytest.raises(RunError, match="does not fit this attack"):
        learner(3).load(learner(4).state())
