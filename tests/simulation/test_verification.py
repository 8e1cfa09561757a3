from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from lightsplit.simulation import verify

SGD = partial(torch.optim.SGD, lr=0.05, momentum=0.9)


class Noisy(nn.Module):
    """Dropout in every part, as a module and as a function, and BatchNorm."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        self.second = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Sequential(nn.Dropout(0.3), nn.Linear(8, 3))

    def forward(self, inputs):
        hidden = self.second(self.first(inputs))
        hidden = functional.dropout(hidden, 0.4, self.training)
        return self.last(self.norm(hidden).relu())


def batches(count=20):
    return [(torch.rand(8, 6), torch.randint(3, (8,))) for _ in range(count)]


@pytest.mark.parametrize("tail_from", ["last", None])
@pytest.mark.parametrize(
    "optimizer", [SGD, partial(torch.optim.Adam, lr=1e-2)], ids=["sgd", "adam"]
)
def test_a_model_with_dropout_and_batch_norm_is_the_same_split(tail_from, optimizer):
    result = verify(
        Noisy(), batches(), optimizer=optimizer, head_until="first", tail_from=tail_from
    )
    assert result.is_same
    assert result.largest_difference <= 1e-6
    assert result.change > 1e-2


def test_the_model_that_is_verified_stays_untouched():
    model = Noisy()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    verify(model, batches(3), optimizer=SGD, head_until="first", tail_from="last")
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_split_that_trains_otherwise_is_found_out():
    rates = iter([0.05, 0.05, 0.06])

    def slips(parameters):
        return torch.optim.SGD(parameters, lr=next(rates))

    result = verify(
        Noisy(), batches(5), optimizer=slips, head_until="first", tail_from="last"
    )
    assert not result.is_same


def test_training_that_moves_nothing_proves_nothing():
    still = partial(torch.optim.SGD, lr=0.0)
    result = verify(
        Noisy(), batches(2), optimizer=still, head_until="first", tail_from="last"
    )
    assert result.largest_difference == 0
    assert not result.is_same


def test_an_optimizer_that_remembers_otherwise_is_found_out():
    """With so small a rate the weights alone would look the same."""
    momenta = iter([0.9, 0.9, 0.5])

    def slips(parameters):
        return torch.optim.SGD(parameters, lr=1e-7, momentum=next(momenta))

    result = verify(
        Noisy(), batches(5), optimizer=slips, head_until="first", tail_from="last"
    )
    assert result.largest_difference > 0.01
    assert result.where.startswith("momentum_buffer of ")


def test_a_gradient_that_was_another_one_in_an_early_step_is_found_out():
    """All else is the same: the optimizer goes by the signs of gradients alone."""

    class Signs(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {"lr": 0.01})

        @torch.no_grad()
        def step(self):
            for one in self.param_groups[0]["params"]:
                one.sub_(0.01 * one.grad.sign())

    factors = iter([2.0])  # for the first step of the whole model

    def loss(output, labels):
        return next(factors, 1.0) * functional.cross_entropy(output, labels)

    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3))
    cut = {"head_until": "0", "tail_from": "2"}
    result = verify(model, batches(5), optimizer=Signs, loss=loss, **cut)
    assert {kind for kind, size in result.by_kind.items() if size} == {"gradients"}
    assert result.where.endswith("at step 0")
    assert not result.is_same


def test_any_loss_and_nested_inputs_can_be_verified():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.mix = nn.Embedding(4, 6), Sum()
            self.body, self.last = nn.Linear(6, 6), nn.Linear(6, 2)

        def forward(self, pair):
            return self.last(self.body(self.mix(self.embed(pair["a"]), pair["b"])))

    class Sum(nn.Module):
        def forward(self, first, second):
            return first + second

    pairs = [
        ({"a": torch.randint(4, (8,)), "b": torch.rand(8, 6)}, torch.rand(8, 2))
        for _ in range(5)
    ]
    result = verify(
        Pair(),
        pairs,
        optimizer=partial(torch.optim.Adam, lr=1e-2),
        head_until="mix",
        tail_from="last",
        loss=nn.MSELoss(),
    )
    assert result.is_same
