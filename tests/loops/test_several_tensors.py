"""A loop of one's own on a model with two tensors at each cut."""

import copy

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError

OF_ONE_MAP = ("bottlenet", "franken", "learned-1x1")
NOT_HERE = (*OF_ONE_MAP, "none", "mask-sparse")  # the last needs to be told of signs
CARRYING = [name for name in CODECS.names() if name not in NOT_HERE]


class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.a, self.b = nn.Linear(6, first), nn.Linear(4, second)

    def forward(self, x, y):
        return self.a(x).relu(), self.b(y).tanh()


class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(4, 3)

    def forward(self, x, y):
        return self.a(x) + self.b(y)


class Streams(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.middle, self.end = Pair(6, 4), Pair(6, 4), Sum()

    def forward(self, x):
        return self.end(*self.middle(*self.start(x, x[..., :4])))


def make_network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Streams()


def batch(step, shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(step))


def train(model, optimizer, shape):
    for step in range(4):
        model(batch(step, shape)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def cut(shape, **more):
    places = {"head_until": "start", "tail_from": "end"}
    return {**places, "example": torch.rand(shape), **more}


@pytest.mark.parametrize("shape", [(5, 6), (5, 3, 6)], ids=["samples", "tokens"])
def test_the_weights_are_those_of_the_whole_model(kit, shape):
    network = make_network()
    twin = copy.deepcopy(network)
    model = kit.make_ends(network, cut=cut(shape))[1]
    train(model, kit.ADAM(model.parameters()), shape)
    train(twin, kit.ADAM(twin.parameters()), shape)
    assert kit.same(network, twin)


@pytest.mark.parametrize("codec", CARRYING)
def test_a_codec_of_any_row_of_numbers_carries_both(kit, codec):
    network = make_network()
    before = copy.deepcopy(network)
    model = kit.make_ends(network, cut=cut((5, 6), codec=codec))[1]
    train(model, kit.ADAM(model.parameters()), (5, 6))
    changed = {
        name.split(".")[0]
        for name, one in network.state_dict().items()
        if not torch.equal(one, before.state_dict()[name])
    }
    assert changed == {"start", "middle", "end"}
    assert all(one.isfinite().all() for one in network.parameters())


def test_a_codec_of_one_feature_map_refuses_both_by_name(kit):
    named = r"learned-1x1 .* 2 tensors cross the front cut: tensor 1 of 'start', tensor"
    with pytest.raises(ConfigError, match=named):
        kit.make_ends(make_network(), cut=cut((5, 6), codec="learned-1x1"))
