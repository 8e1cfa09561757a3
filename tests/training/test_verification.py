from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from lightsplit.training import verify

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
