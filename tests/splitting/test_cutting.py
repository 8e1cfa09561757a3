import copy

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import legal_cuts, run_client, split


def _split(case):
    return split(case.model, head_until=case.head, tail_from=case.tail, example=case.x)


def _cut(model, head_until, tail_from=None):
    example = model.example
    return split(model, head_until=head_until, tail_from=tail_from, example=example)


def _legal(model, head_until=None):
    return legal_cuts(model, head_until=head_until, example=model.example)


@pytest.mark.parametrize("training", [True, False])
def test_the_parts_in_a_row_compute_the_same_as_the_model(case, run, training):
    twin = copy.deepcopy(case.model).train(training)
    parts = _split(case)
    for part in parts.parts:
        part.train(training)
    assert torch.equal(run(case.x, *parts.parts), run(case.x, twin))
    for name, tensor in case.model.state_dict().items():
        assert torch.equal(tensor, twin.state_dict()[name]), name


@pytest.mark.parametrize("training", [True, False])
def test_the_clients_one_forward_pass_computes_the_same(case, run, training):
    twin = copy.deepcopy(case.model).train(training)
    head, backbone, *tail = (part.train(training) for part in _split(case).parts)
    if tail:
        found = run(case.x, lambda x: run_client(head, tail[0], backbone, x))
        assert torch.equal(found, run(case.x, twin))


def test_the_parts_name_their_state_as_the_model_does(case):
    names = [name for part in _split(case).parts for name in part.state_dict()]
    assert sorted(names) == sorted(case.model.state_dict())


def test_the_parts_hold_the_parameters_of_the_model(case):
    parts = _split(case).parts
    own = {name: p for part in parts for name, p in part.named_parameters()}
    for name, parameter in case.model.named_parameters():
        assert own[name] is parameter


def test_the_gradients_are_those_of_the_model(case, run):
    twin = copy.deepcopy(case.model)
    run(case.x, twin).square().sum().backward()
    run(case.x, *_split(case).parts).square().sum().backward()
    for ours, theirs in zip(case.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_copies_of_the_parts_do_the_same_and_share_nothing(case, run):
    parts = [part.eval() for part in _split(case).parts]
    copies = [copy.deepcopy(part) for part in parts]
    assert torch.equal(run(case.x, *copies), run(case.x, *parts))
    for copied, part in zip(copies, parts, strict=True):
        assert copied.state_dict().keys() == part.state_dict().keys()
        assert {n: m.training for n, m in copied.named_modules()} == {
            n: m.training for n, m in part.named_modules()
        }
        for ours, theirs in zip(copied.parameters(), part.parameters(), strict=True):
            assert ours is not theirs


def test_the_parts_can_change_their_type(case, run):
    parts = [part.to(torch.float64).eval() for part in _split(case).parts]
    assert run(case.x.double(), *parts).dtype == torch.float64


def test_splitting_leaves_the_model_as_it_was(case):
    next(iter(case.model.children())).eval()
    modes = [module.training for module in case.model.modules()]
    attributes = [set(vars(module)) for module in case.model.modules()]
    seed = torch.get_rng_state()
    _split(case)
    assert [module.training for module in case.model.modules()] == modes
    assert [set(vars(module)) for module in case.model.modules()] == attributes
    assert torch.equal(torch.get_rng_state(), seed)


def test_the_parts_are_in_the_mode_of_the_model(case):
    case.model.eval()
    for part in _split(case).parts:
        assert not any(module.training for module in part.modules())


def test_without_a_tail_the_backbone_runs_to_the_end(models):
    parts = _cut(models.Residual(), "layer1")
    assert parts.tail is None
    assert "fc.weight" in parts.backbone.state_dict()


def test_a_module_that_is_called_first_by_the_tail_belongs_to_it(models):
    parts = _cut(models.Residual(), "layer1.0", "fc")
    assert list(parts.tail.state_dict()) == ["fc.weight", "fc.bias"]
    assert parts.backbone(parts.head(torch.randn(2, 3, 8, 8))).shape == (2, 4)


def test_a_module_that_fx_cannot_follow_is_kept_whole(models, run):
    model, x = models.Around(), torch.randn(3, 6)
    parts = _cut(model, "first", "last")
    assert torch.equal(run(x, *parts.parts), run(x, model))


@pytest.mark.parametrize("head", [None, "layer1.0"])
def test_every_legal_cut_of_a_residual_network_is_accepted(models, head):
    model = models.Residual()
    cuts = _legal(model, head)
    assert cuts
    for cut in cuts:
        _cut(model, *((cut,) if head is None else (head, cut)))


def test_legal_cuts_come_in_the_order_of_execution(models):
    assert _legal(models.LongSkip()) == ["stem", "enc1.act", "enc1", "mix"]
    assert legal_cuts(models.nested())[:3] == ["0.0", "0.1", "0.2"]


def test_a_cut_that_a_skip_crosses_is_refused_with_the_nearest_legal_ones(
    models, suggested
):
    with pytest.raises(
        SplitError, match=r"2 values cross there.*'enc1' .*, 'dec'"
    ) as e:
        _cut(models.LongSkip(), "dec")
    assert suggested(str(e.value)) == ["enc1", "mix"]


REFUSED = {
    "a skip crosses the front cut": (
        "LongSkip",
        "enc2",
        "out",
        "'enc1' (read by the model itself), 'enc2'",
    ),
    "a skip crosses the back cut": (
        "LongSkip",
        "stem",
        "dec",
        "'enc1' (read by the model itself), 'enc2'",
    ),
    "a cut in a residual branch": ("Residual", "layer1.1.conv", "fc", "'layer1.0'"),
    "the last module": ("Encoder", "fc", None, "no module is left"),
    "the tail before the head": ("Residual", "layer2.0", "layer1", "must start after"),
    "the tail at the head": ("Residual", "layer1", "layer1", "must start after"),
    "the tail in the head": ("Residual", "layer1", "layer1.1", "must start after"),
    "an empty backbone": ("Residual", "layer1", "layer2", "no module is left"),
    "a holder": ("Encoder", "layers", "fc", "never calls it"),
    "a module used twice": ("Dropping", "drop", "end", "calls it 2 times"),
    "a module of torch.nn": (
        "Encoder",
        "layers.1.linear1",
        "fc",
        "'layers.1.norm1' (read by 'layers.1'), 'layers.1.linear1'",
    ),
    "control flow": ("Around", "branching.a", "last", "branches on numbers"),
}


@pytest.mark.parametrize(
    ("name", "head", "tail", "reason"), REFUSED.values(), ids=REFUSED.keys()
)
def test_a_refusal_gives_its_reason_and_cuts_that_are_accepted(
    models, suggested, name, head, tail, reason
):
    model = getattr(models, name)()
    with pytest.raises(SplitError) as refusal:
        _cut(model, head, tail)
    message = str(refusal.value)
    assert reason in message
    blames_head = f"head_until={head!r}" in message
    for cut in suggested(message):
        pair = (cut, tail) if blames_head else (head, cut)
        _cut(model, *pair)


def test_an_unknown_path_is_refused_with_a_close_name_and_the_legal_cuts(
    models, suggested
):
    with pytest.raises(SplitError, match=r"did you mean 'layer1\.0'") as refusal:
        _cut(models.Residual(), "layer1,0")
    for cut in suggested(str(refusal.value), "; legal cuts: "):
        _cut(models.Residual(), cut)


def test_an_unknown_tail_is_refused_with_the_legal_tails(models, suggested):
    with pytest.raises(SplitError, match="tail_from='head'") as refusal:
        _cut(models.LongSkip(), "stem", "head")
    for cut in suggested(str(refusal.value), "; legal cuts: "):
        _cut(models.LongSkip(), "stem", cut)


def test_a_model_that_cannot_be_traced_at_all_is_sent_to_the_way_by_hand(models):
    assert _legal(models.Branching()) == []
    with pytest.raises(SplitError, match=r"never calls it.*SplitModel\.by_hand"):
        _cut(models.Branching(), "a", "b")
    with pytest.raises(SplitError, match=r"no module can be cut at.*by_hand"):
        _cut(models.Branching(), "x")


class _Chain(nn.Module):
    """A chain of modules, some of them with a shortcut, some of them chains."""

    def __init__(self, children, *, has_shortcut):
        super().__init__()
        self.steps = nn.ModuleList(children)
        self.has_shortcut = has_shortcut

    def forward(self, x):
        y = x
        for step in self.steps:
            y = step(y)
        return x + y if self.has_shortcut else y


LEAVES = st.sampled_from(
    [
        lambda: nn.Linear(3, 3),
        nn.Tanh,
        lambda: nn.Dropout(0.5),
        lambda: nn.BatchNorm1d(3),
    ]
)


def _chains(inner):
    children = st.lists(inner, min_size=1, max_size=4)
    plain = children.map(lambda made: lambda: nn.Sequential(*(m() for m in made)))
    own = st.tuples(children, st.booleans()).map(
        lambda pair: lambda: _Chain([m() for m in pair[0]], has_shortcut=pair[1])
    )
    return plain | own


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(build=_chains(st.recursive(LEAVES, _chains, max_leaves=8)), data=st.data())
def test_any_legal_cuts_of_any_chain_give_parts_that_make_the_whole(build, data):
    model, x = build(), torch.randn(4, 3)
    heads = legal_cuts(model, example=x)
    if not heads:
        return
    head = data.draw(st.sampled_from(heads))
    tail = data.draw(
        st.sampled_from([None, *legal_cuts(model, head_until=head, example=x)])
    )
    twin = copy.deepcopy(model)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        parts = split(model, head_until=head, tail_from=tail, example=x).parts
        head, backbone, *rest = parts
        y = run_client(head, rest[0], backbone, x) if rest else backbone(head(x))
        torch.manual_seed(0)
        assert torch.equal(y, twin(x))
    names = [name for part in parts for name in part.state_dict()]
    assert sorted(names) == sorted(model.state_dict())
