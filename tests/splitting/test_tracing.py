import copy

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import split


class Own(nn.Module):
    """Two layers around the step that a subclass defines."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)
        self.kept = None

    def forward(self, x):
        return self.last(self.step(self.first(x)))


class WithConstant(Own):
    def step(self, x):
        return x + torch.tensor([1.0, 2.0, 3.0])


class Keeping(Own):
    def step(self, x):
        self.kept = x
        return x


class WithoutGradient(Own):
    def step(self, x):
        with torch.no_grad():
            return x * 2


class Unregistered(Own):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(3, 3)]

    def step(self, x):
        return self.hidden[0](x)


class Counting(Own):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def step(self, x):
        self.count.add_(1)
        return x * self.count


def _cut(model):
    return split(model, head_until="first").parts


def test_a_constant_of_the_forward_pass_goes_with_its_part_but_not_into_its_state(run):
    model, x = WithConstant(), torch.randn(2, 3)
    parts = _cut(model)
    copies = [copy.deepcopy(part) for part in parts]
    assert torch.equal(run(x, *parts), run(x, model))
    for part in (parts[1], copies[1]):
        assert list(part.state_dict()) == ["last.weight", "last.bias"]


def test_a_value_that_the_forward_pass_keeps_on_the_model_is_not_left_there():
    model = Keeping()
    _cut(model)
    assert model.kept is None


def test_a_buffer_that_the_forward_pass_changes_is_changed_by_the_part(run):
    model, twin, x = Counting(), Counting(), torch.randn(2, 3)
    twin.load_state_dict(model.state_dict())
    parts = _cut(model)
    assert model.count == 0
    for _ in range(2):
        assert torch.equal(run(x, *parts), run(x, twin))
    assert model.count == twin.count == 2


def test_a_block_without_gradient_is_refused_because_it_would_be_lost():
    with pytest.raises(SplitError, match="no_grad"):
        _cut(WithoutGradient())


def test_a_module_that_the_model_does_not_hold_is_refused():
    with pytest.raises(SplitError, match="not installed as a submodule"):
        _cut(Unregistered())
