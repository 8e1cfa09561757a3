import pytest
import torch
from torch import nn
from torch.nn import functional

from lightsplit.splitting import split


class Wrapped(nn.Module):
    """A layer, the step under test, a layer; and a layer around the whole."""

    def __init__(self, step):
        super().__init__()
        self.inner = _Inner(step)
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.inner(x))


class _Inner(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.step = step

    def forward(self, x):
        return self.second(self.step(self.first(x), self.training))


def _drop(x, training):
    return functional.dropout(x, 0.5, training)


def _drop_in_evaluation(x, training):
    return functional.dropout(x, p=0.5, training=not training)


def _branch(x, training):
    return x.relu() if training else x


def _scale(x, training):
    return x * (0.5 if training else 1.0)


def _rewire(x, training):
    relu, tanh = x.relu(), x.tanh()
    return torch.neg(relu if training else tanh)


def _draw(x, training):
    return x + torch.randn(3)


def _structured(x, training):
    return torch.cat([x[0:2], x[2:]], dim=0)


STEPS = [_drop, _drop_in_evaluation, _structured, _branch, _scale, _rewire, _draw]


def _cut(model):
    return split(
        model, head_until="inner.first", tail_from="last", example=torch.zeros(4, 3)
    )


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_a_mode_that_is_read_in_a_forward_pass_is_followed(step, training, run):
    model, x = Wrapped(step), torch.randn(4, 3)
    parts = _cut(model).parts
    for module in (*parts, model):
        module.train(training)
    assert torch.equal(run(x, *parts), run(x, model))


def test_each_part_follows_its_own_mode():
    parts = _cut(Wrapped(_drop))
    z = torch.ones(4, 3)
    parts.head.eval()
    assert not torch.equal(parts.backbone(z), parts.backbone(z))
    parts.backbone.eval()
    assert torch.equal(parts.backbone(z), parts.backbone(z))


def test_the_parts_start_in_the_mode_of_the_model():
    model = Wrapped(_drop)
    model.inner.eval()
    backbone = _cut(model).backbone
    z = torch.ones(4, 3)
    assert torch.equal(backbone(z), backbone(z))
    assert backbone.training


def test_following_the_mode_adds_nothing_to_the_state():
    parts = _cut(Wrapped(_drop))
    assert list(parts.backbone.state_dict()) == [
        "inner.second.weight",
        "inner.second.bias",
    ]
