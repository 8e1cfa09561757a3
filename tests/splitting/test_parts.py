import copy

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import SplitModel, merge, split


@pytest.fixture
def by_hand(models):
    return SplitModel.by_hand(
        nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5)),
        models.Branching(),
        nn.Linear(6, 2),
    )


def _merged(case):
    parts = split(case.model, head_until=case.head, tail_from=case.tail, example=case.x)
    return parts, merge(parts)


@pytest.mark.parametrize("training", [True, False])
def test_the_merged_model_computes_the_same_as_the_model(case, run, training):
    parts, merged = _merged(case)
    for module in (*parts.parts, case.model, merged):
        module.train(training)
    assert type(merged) is type(case.model)
    assert torch.equal(run(case.x, merged), run(case.x, case.model))


def test_the_merged_model_shares_nothing_with_the_parts(case):
    _, merged = _merged(case)
    before = copy.deepcopy(merged.state_dict())
    with torch.no_grad():
        for tensor in case.model.state_dict().values():
            tensor.add_(1)
    assert all(torch.equal(before[k], v) for k, v in merged.state_dict().items())


def test_the_merged_model_has_the_weights_that_were_loaded_into_the_parts(case):
    parts, _ = _merged(case)
    for part in parts.parts:
        part.load_state_dict({k: v + 1 for k, v in part.state_dict().items()})
    merged = merge(parts).state_dict()
    for part in parts.parts:
        for name, tensor in part.state_dict().items():
            assert torch.equal(merged[name], tensor)


def test_copied_parts_merge_with_their_own_weights(models):
    model = models.Residual()
    parts = split(model, head_until="stem", tail_from="fc", example=model.example)
    head = copy.deepcopy(parts.head)
    nn.init.ones_(head.stem.weight)
    merged = merge(SplitModel(head, parts.backbone, parts.tail, parts.whole))
    assert torch.equal(merged.stem.weight, head.stem.weight)
    assert not torch.equal(parts.whole.stem.weight, head.stem.weight)


@pytest.mark.parametrize("training", [True, False])
def test_the_merged_model_is_in_the_mode_of_the_parts(case, training):
    parts, _ = _merged(case)
    for part in parts.parts:
        part.train(training)
    assert all(module.training is training for module in merge(parts).modules())


def test_a_frozen_module_stays_in_its_mode(models):
    model = models.Residual()
    model.layer2[0].norm.eval()
    example = model.example
    parts = split(model, head_until="layer1.0", tail_from="fc", example=example)
    merged = merge(parts)
    modes = {name: module.training for name, module in model.named_modules()}
    assert {n: m.training for n, m in merged.named_modules()} == modes


def test_parts_given_by_hand_make_the_whole(by_hand, run):
    x = torch.randn(3, 4)
    assert torch.equal(run(x, *by_hand.parts), run(x, by_hand.whole))


def test_parts_given_by_hand_are_named_by_their_place(by_hand):
    names = [name for part in by_hand.parts for name in part.state_dict()]
    assert names == list(by_hand.whole.state_dict())
    assert list(by_hand.tail.state_dict()) == ["tail.weight", "tail.bias"]


def test_parts_given_by_hand_merge(by_hand, run):
    x = torch.randn(3, 4)
    assert torch.equal(run(x, merge(by_hand)), run(x, *by_hand.parts))


def test_parts_given_by_hand_keep_their_modes():
    parts = SplitModel.by_hand(nn.Dropout().eval(), nn.Linear(2, 2).eval())
    assert parts.tail is None
    assert not any(module.training for module in merge(parts).modules())


def test_parts_given_by_hand_that_share_a_weight_are_refused():
    head, tail = nn.Linear(3, 3), nn.Linear(3, 3)
    tail.weight = head.weight
    with pytest.raises(SplitError, match=r"'head\.weight' as 'tail\.weight'"):
        SplitModel.by_hand(head, nn.ReLU(), tail)
