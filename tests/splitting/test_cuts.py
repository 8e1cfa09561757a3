import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import legal_cuts, split


class Steps(nn.Module):
    """Two layers with the given step between them; subclasses say which."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.middle = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.gain = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.ones(3))
        self.register_buffer("constant", torch.ones(3), persistent=False)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


class TiedModule(Steps):
    def forward(self, x):
        return self.first(self.middle(self.first(x)) + self.last(x))


class TiedGain(Steps):
    def forward(self, x):
        return self.last(self.middle(self.first(x * self.gain))) * self.gain


class TiedBuffer(Steps):
    def forward(self, x):
        return self.last(self.middle(self.first(x * self.shift))) * self.shift


class Shared(Steps):
    def forward(self, x):
        x = self.first(self.act(x) * self.constant)
        return self.last(self.act(self.middle(x)) * self.constant)


class LateInput(Steps):
    def forward(self, x):
        return self.last(self.middle(self.first(x))) + x


class LateSize(Steps):
    def forward(self, x):
        count = x.size(0)
        return self.last(self.middle(self.first(x)).view(count, -1))


class TwoInputs(Steps):
    def forward(self, x, factor=2.0, unused=1):
        return self.last(self.middle(self.first(x) * factor))


class HeadInput(Steps):
    def forward(self, x, factor=2.0, unused=1):
        return self.last(self.middle(self.first(x * factor)))


class TwoOutputs(Steps):
    def forward(self, x):
        early = self.first(x)
        return {"early": early, "late": self.last(self.middle(early))}


class ManyOutputs(Steps):
    def forward(self, x):
        late = self.last(self.middle(self.first(x)))
        return {"late": late, "rest": [late.relu(), late.tanh()]}


class Recurrent(Steps):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3, batch_first=True)

    def forward(self, x):
        out, _ = self.lstm(self.first(x))
        return self.last(self.middle(out))


class Apart(Steps):
    def forward(self, x):
        self.first(x)
        return self.middle(self.gain)


def _cut(model):
    return split(model, head_until="first", tail_from="last")


@pytest.mark.parametrize(("model", "name"), [(TiedGain, "gain"), (TiedBuffer, "shift")])
def test_state_that_two_parts_use_is_refused_by_name(model, name):
    with pytest.raises(SplitError, match=f"both sides use '{name}'"):
        _cut(model())


def test_weights_that_are_tied_across_a_cut_are_refused_by_both_names():
    model = Steps()
    model.last.weight = model.first.weight
    with pytest.raises(SplitError, match=r"'first\.weight' as 'last\.weight'"):
        _cut(model)


def test_weights_that_are_tied_within_a_part_are_fine():
    model = Steps()
    model.last.weight = model.middle.weight
    parts = split(model, head_until="first")
    assert parts.backbone.last.weight is parts.backbone.middle.weight


def test_a_module_without_state_and_a_constant_may_be_used_in_two_parts(run):
    model, x = Shared(), torch.randn(2, 3)
    parts = _cut(model)
    assert torch.equal(run(x, *parts.parts), run(x, model))


def test_a_module_that_two_parts_use_has_a_mode_in_each():
    parts = _cut(Shared())
    parts.head.eval()
    assert parts.backbone.act.training


@pytest.mark.parametrize(
    ("model", "value"),
    [(LateInput, "the input 'x'"), (LateSize, "the result of size")],
)
def test_a_value_from_before_that_is_used_after_is_named(model, value):
    with pytest.raises(SplitError, match=f"2 values cross there.*{value}"):
        _cut(model())


def test_an_input_that_the_backbone_needs_is_refused():
    with pytest.raises(SplitError, match="the input 'factor'"):
        _cut(TwoInputs())


def test_the_head_keeps_its_inputs_and_their_defaults():
    model, x = HeadInput(), torch.randn(2, 3)
    parts = _cut(model)
    for factor in ({}, {"factor": 3.0}):
        activation = parts.head(x, **factor)
        assert torch.equal(parts.tail(parts.backbone(activation)), model(x, **factor))


def test_an_early_result_that_is_returned_crosses_as_well():
    with pytest.raises(SplitError, match="'first', 'middle'"):
        _cut(TwoOutputs())


def test_the_tail_may_return_any_structure(run):
    model, x = ManyOutputs(), torch.randn(2, 3)
    ours, theirs = run(x, *_cut(model).parts), run(x, model)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_the_tensor_out_of_a_tuple_crosses_and_not_the_tuple(run):
    model, x = Recurrent(), torch.randn(2, 4, 3)
    parts = split(model, head_until="lstm", tail_from="last")
    assert parts.head(x).shape == x.shape
    assert torch.equal(run(x, *parts.parts), run(x, model))


def test_a_head_that_nothing_depends_on_is_refused():
    with pytest.raises(SplitError, match="nothing that is computed before is used"):
        split(Apart(), head_until="first")


def test_a_module_that_is_called_twice_is_no_legal_cut():
    assert "first" not in legal_cuts(TiedModule())
    assert "act" not in legal_cuts(Shared())


def test_a_module_can_be_cut_at_by_its_second_name():
    model = Steps()
    model.alias = model.first
    assert list(split(model, head_until="alias").head.state_dict()) == [
        "first.weight",
        "first.bias",
    ]
