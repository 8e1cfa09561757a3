import numpy as np
import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import empty_weights, split
from lightsplit.splitting.comparison import refuse_difference


class Hidden(nn.Module):
    """Adds its input, after it was out of torch, to what the backbone makes."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.middle = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        unseen = torch.from_numpy(np.from_dlpack(x).copy())
        return self.last(self.middle(self.first(x)) + unseen)


class Drawing(nn.Module):
    """Random also in evaluation mode, with batch norm and a gradient of its own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.last = nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.norm(self.first(x))
        return self.last(x + torch.randn_like(x))


def _cut(model, example):
    return split(model, head_until="first", tail_from="last", example=example)


def test_numbers_that_no_trace_sees_are_found_by_comparing():
    with pytest.raises(SplitError, match=r"tensor 1 of the output has other numbers.*"):
        _cut(Hidden(), torch.ones(2, 3))


def test_a_model_without_weights_is_not_compared():
    with empty_weights():
        model = Hidden()
    assert _cut(model, torch.ones(2, 3)).tail is not None


def test_a_part_that_was_changed_is_found(case):
    parts = split(case.model, head_until=case.head, tail_from=case.tail, example=case.x)
    refuse_difference(parts, case.x)
    parts.backbone.register_forward_hook(lambda _, args, result: result + 1)
    with pytest.raises(SplitError, match="do not return what the model returns"):
        refuse_difference(parts, case.x)


def test_a_part_that_fails_is_one_sentence():
    parts = _cut(Drawing(), torch.ones(2, 3))
    parts.backbone.register_forward_hook(lambda _, args, result: result[:, :1])
    with pytest.raises(SplitError, match=r"parts fail on the example.*RuntimeError"):
        refuse_difference(parts, torch.ones(2, 3))


def test_comparing_changes_nothing():
    model = Drawing()
    model.norm.eval()
    parts = _cut(model, torch.randn(2, 3))
    roots = (model, *parts.parts)
    modes = [[module.training for module in root.modules()] for root in roots]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seed = torch.get_rng_state()
    refuse_difference(parts, torch.randn(2, 3, generator=torch.Generator()))
    assert torch.equal(torch.get_rng_state(), seed)
    assert [[module.training for module in root.modules()] for root in roots] == modes
    assert all(torch.equal(state[k], v) for k, v in model.state_dict().items())
    assert [root.calls for root in roots] == [0] * len(roots)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_example_that_a_sequence_cannot_take_is_refused():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with pytest.raises(SplitError, match="example does not fit the model in evalua"):
        split(model, head_until="0", tail_from="2", example=torch.zeros(2, 4))
    assert split(model, head_until="0", tail_from="2").tail is not None
