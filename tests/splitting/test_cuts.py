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


class EarlyOutput(Steps):
    def forward(self, x):
        early = self.first(self.act(x))
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


X = torch.randn(2, 3)


def _cut(model):
    return split(model, head_until="first", tail_from="last", example=X)


@pytest.mark.parametrize(("model", "name"), [(TiedGain, "gain"), (TiedBuffer, "shift")])
def test_state_that_both_parties_use_is_refused_by_name(model, name):
    with pytest.raises(SplitError, match=f"both sides use '{name}'"):
        split(model(), head_until="first", example=X)


def test_weights_that_are_tied_across_a_cut_are_refused_by_both_names():
    model = Steps()
    model.middle.weight = model.first.weight
    with pytest.raises(SplitError, match=r"'first\.weight' as 'middle\.weight'"):
        _cut(model)


@pytest.mark.parametrize("model", [TiedGain, TiedBuffer])
def test_head_and_tail_may_use_the_same_state(model, run):
    made = model()
    assert torch.equal(run(X, *_cut(made).parts), run(X, made))


def test_weights_may_be_tied_between_head_and_tail():
    model = Steps()
    model.last.weight = model.first.weight
    parts = _cut(model)
    assert parts.head.first.weight is parts.tail.last.weight


def test_weights_that_are_tied_within_a_part_are_fine():
    model = Steps()
    model.last.weight = model.middle.weight
    parts = split(model, head_until="first", example=X)
    assert parts.backbone.last.weight is parts.backbone.middle.weight


def test_a_module_without_state_and_a_constant_may_be_used_in_two_parts(run):
    model, x = Shared(), torch.randn(2, 3)
    parts = _cut(model)
    assert torch.equal(run(x, *parts.parts), run(x, model))


def test_a_module_that_two_parts_use_has_a_mode_in_each():
    parts = _cut(Shared())
    parts.head.eval()
    assert parts.backbone.act.training


def test_an_input_that_the_tail_reads_stays_with_the_client():
    model = LateInput()
    parts = _cut(model)
    assert torch.equal(parts.head.through(parts.tail, parts.backbone, X), model(X))
    with pytest.raises(SplitError, match="the tail needs the input 'x' besides"):
        parts.tail(parts.backbone(parts.head(X)))


def test_the_size_of_an_input_is_no_secret(run):
    model = LateSize()
    assert torch.equal(run(X, *_cut(model).parts), run(X, model))


def test_an_input_that_the_backbone_needs_is_refused_unless_it_is_shared():
    factor = torch.full((3,), 3.0)
    example = {"x": X, "factor": factor}
    with pytest.raises(SplitError, match=r"the input 'factor' \(read by .*share"):
        split(TwoInputs(), head_until="first", tail_from="last", example=example)
    model = TwoInputs()
    parts = split(
        model, head_until="first", tail_from="last", example=example, share=["factor"]
    )
    shared = parts.head.companions(example)
    output = parts.backbone(parts.head(example), shared)
    assert torch.equal(parts.tail(output), model(X, factor))
    with pytest.raises(SplitError, match="expected these companions: factor; got 0"):
        parts.backbone(parts.head(example))


def test_the_head_keeps_its_inputs_and_their_defaults():
    model = HeadInput()
    parts = _cut(model)
    for factor in ({}, {"factor": 3.0}):
        activation = parts.head(X, **factor)
        assert torch.equal(parts.tail(parts.backbone(activation)), model(X, **factor))


def test_an_early_result_that_is_returned_stays_with_the_client():
    model = TwoOutputs()
    parts = _cut(model)
    found = parts.head.through(parts.tail, parts.backbone, X)
    torch.testing.assert_close(found, model(X), rtol=0, atol=0)


def test_a_result_of_the_backbone_that_is_returned_crosses_as_well():
    named = r"2 values cross there.*'first' \(read by the model's output\), 'middle'"
    with pytest.raises(SplitError, match=named):
        split(EarlyOutput(), head_until="act", tail_from="last", example=X)


def test_the_tail_may_return_any_structure(run):
    model, x = ManyOutputs(), torch.randn(2, 3)
    ours, theirs = run(x, *_cut(model).parts), run(x, model)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_the_tensor_out_of_a_tuple_crosses_and_not_the_tuple(run):
    model, x = Recurrent(), torch.randn(2, 4, 3)
    parts = split(model, head_until="lstm", tail_from="last", example=x)
    assert parts.head(x).shape == x.shape
    assert torch.equal(run(x, *parts.parts), run(x, model))


def test_a_head_that_nothing_depends_on_is_refused():
    with pytest.raises(SplitError, match="no value computed before it is used"):
        split(Apart(), head_until="first", example=X)


def test_a_module_that_is_called_twice_is_no_legal_cut():
    assert "first" not in legal_cuts(TiedModule(), example=X)
    assert "act" not in legal_cuts(Shared(), example=X)


def test_a_module_can_be_cut_at_by_its_second_name():
    model = Steps()
    model.alias = model.first
    head = split(model, head_until="alias", example=X).head
    assert head.alias is head.first is model.first
