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


class DrawnEarly(Own):
    def forward(self, x):
        noise = torch.randn(3)
        return self.last(self.first(x) + noise)


class Asking(Own):
    def forward(self, x):
        return self.last(self.first(x) if x.sum() > 0 else self.first(-x))


class Held(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.model(x))


class Counting(Own):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def step(self, x):
        self.count.add_(1)
        return x * self.count


def _cut(model):
    return split(model, head_until="first", example=torch.zeros(2, 3)).parts


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


def test_a_block_without_gradient_stays_one(run):
    model, x = WithoutGradient(), torch.randn(2, 3)
    parts = _cut(model)
    run(x, *parts).sum().backward()
    assert model.first.weight.grad is None
    assert model.last.weight.grad is not None


def test_weights_that_the_model_does_not_hold_are_constants(run):
    model, x = Unregistered(), torch.randn(2, 3)
    assert torch.equal(run(x, *_cut(model)), run(x, model))


def test_a_random_number_of_the_head_is_not_known_to_the_server():
    with pytest.raises(SplitError, match="the result of randn in the model itself"):
        split(DrawnEarly(), head_until="first", example=torch.zeros(2, 3))


def test_a_branch_on_numbers_that_one_party_lacks_is_refused():
    with pytest.raises(SplitError, match=r"itself branches on numbers that the server"):
        split(Asking(), head_until="first", example=torch.zeros(2, 3))


def test_a_branch_inside_a_module_of_one_party_is_fine(run):
    model = nn.Sequential(nn.Linear(3, 3), Asking())
    whole, x = Held(model), torch.randn(2, 3)
    parts = split(whole, head_until="model.0", tail_from="last", example=x).parts
    assert torch.equal(run(x, *parts), run(x, whole))


@pytest.mark.parametrize(
    "example", [torch.zeros(2, 4), torch.zeros(2, 3).long(), {"y": torch.zeros(2, 3)}]
)
def test_an_example_that_does_not_fit_is_refused_in_one_sentence(example):
    with pytest.raises(SplitError, match="example does not fit the model") as refusal:
        split(WithConstant(), head_until="first", example=example)
    assert "\n" not in str(refusal.value)


def test_a_buffer_whose_elements_share_memory_is_no_obstacle(run):
    model, x = WithConstant(), torch.randn(2, 3)
    model.register_buffer("same", torch.zeros(()).expand(4))
    assert torch.equal(run(x, *_cut(model)), run(x, model))
