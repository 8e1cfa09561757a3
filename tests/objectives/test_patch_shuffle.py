import pytest
import torch
from torch import nn

from lightsplit import seeding
from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError
from lightsplit.objectives import PatchShuffle, ServerPart

TOKENS, VALUES = 5, 4


def block():
    return nn.TransformerEncoderLayer(VALUES, 2, 8, 0.0, batch_first=True)


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = block()

    def forward(self, tokens):
        return self.block(tokens).mean(1)


class Placed(nn.Module):
    """Adds learned positions, which begin as zeros."""

    def __init__(self):
        super().__init__()
        self.block = block()
        self.place = nn.Parameter(torch.zeros(TOKENS, VALUES))

    def forward(self, tokens):
        return self.block(tokens + self.place)


def shuffle(module, shape=(TOKENS, VALUES), **server):
    codec = CODECS.create("raw", shape=shape)
    return PatchShuffle(codec, ServerPart(module, torch.rand(2, *shape), **server))


def covered(objective, tokens):
    with seeding.scope(1, "order"):
        return objective.cover(tokens)


@pytest.mark.parametrize("make", [block, Pooled])
def test_the_tail_gets_the_output_that_it_would_get_without_it(make):
    module, tokens = make().eval(), torch.randn(6, TOKENS, VALUES)
    sent, uncover = covered(shuffle(module), tokens)
    assert not torch.equal(sent, tokens)
    output = module(sent)
    got = output if uncover is None else uncover(output)
    torch.testing.assert_close(got, module(tokens), atol=1e-5, rtol=1e-4)
    assert (uncover is None) == (make is Pooled)


def test_every_sample_has_an_order_of_its_own_that_follows_from_the_seed():
    tokens = torch.arange(TOKENS * 1.0).view(1, TOKENS, 1).expand(64, TOKENS, VALUES)
    objective = shuffle(block())
    orders = covered(objective, tokens).activation[:, :, 0]
    assert torch.equal(orders.sort(1).values, tokens[:, :, 0])
    assert len(orders.unique(dim=0)) > 32
    assert torch.equal(covered(objective, tokens).activation[:, :, 0], orders)
    assert not torch.equal(objective.cover(tokens).activation[:, :, 0], orders)


def test_the_gradient_goes_back_to_the_token_that_it_belongs_to():
    tokens = torch.randn(3, TOKENS, VALUES, requires_grad=True)
    sent, uncover = covered(shuffle(block()), tokens)
    weight = torch.randn(3, TOKENS, VALUES)
    (uncover(sent) * weight).sum().backward()
    torch.testing.assert_close(tokens.grad, weight)


@pytest.mark.parametrize(
    "module", [Placed(), nn.Sequential(nn.Flatten(), nn.Linear(TOKENS * VALUES, 3))]
)
def test_a_server_that_knows_positions_is_refused(module):
    with pytest.raises(ConfigError, match="treats all tokens alike"):
        shuffle(module)


def test_outputs_for_each_token_are_refused_where_the_server_has_the_tail():
    with pytest.raises(ConfigError, match="treats all tokens alike"):
        shuffle(block(), has_tail=True)
    assert not shuffle(Pooled(), has_tail=True).undoes_outputs


@pytest.mark.parametrize("shape", [(8, 4, 4), (16,), (1, 4)])
def test_activations_that_are_no_tokens_are_refused(shape):
    with pytest.raises(ConfigError, match="patch-shuffle permutes tokens"):
        shuffle(nn.Identity(), shape)


def test_inputs_that_the_server_gets_as_they_are_are_refused():
    with pytest.raises(ConfigError, match="as they are: mask"):
        shuffle(block(), shares=("mask",))
