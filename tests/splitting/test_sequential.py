from collections import OrderedDict

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import legal_cuts, split
from lightsplit.splitting.sequential import is_plain


class Doubling(nn.Sequential):
    def forward(self, x):
        return super().forward(super().forward(x))


def _named():
    return nn.Sequential(
        OrderedDict(
            body=nn.Sequential(OrderedDict(a=nn.Linear(3, 3), b=nn.ReLU())),
            out=nn.Linear(3, 3),
        )
    )


def test_a_sequence_is_cut_into_sequences_with_the_same_names():
    parts = split(_named(), head_until="body.a", tail_from="out")
    assert all(is_plain(part) for part in parts.parts)
    assert [name for name, _ in parts.head.named_modules()] == ["", "body", "body.a"]
    assert [name for name, _ in parts.backbone.named_modules()][-1] == "body.b"


def test_a_sequence_with_a_forward_pass_of_its_own_is_not_plain():
    assert is_plain(nn.Sequential())
    assert not is_plain(Doubling())
    assert legal_cuts(Doubling(nn.Linear(3, 3), nn.Linear(3, 3))) == []


def test_a_module_twice_in_a_sequence_can_be_cut_at_under_either_name(run):
    act = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 3), act, nn.Linear(3, 3), act, nn.Linear(3, 3))
    x = torch.randn(2, 3)
    parts = split(model, head_until="1", tail_from="3")
    assert torch.equal(run(x, *parts.parts), run(x, model))


def test_a_layer_that_stands_on_both_sides_of_the_cut_is_refused():
    layer = nn.Linear(3, 3)
    with pytest.raises(SplitError, match=r"'0\.weight' as '2\.weight'"):
        split(nn.Sequential(layer, nn.ReLU(), layer), head_until="0")
