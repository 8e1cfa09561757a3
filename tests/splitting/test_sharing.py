"""Inputs that the server gets as they are: which of them are the data is said."""

import warnings

import pytest
import torch
from torch import nn

from lightsplit.errors import SplitError
from lightsplit.splitting import companions_of, run_client, split

WARNING = "share names {!r}, which is the data itself"


class Masked(nn.Module):
    """Looks tokens up in the head; a mask is read by the backbone alone."""

    def __init__(self):
        super().__init__()
        self.first = nn.Embedding(5, 3)
        self.middle = nn.Linear(3, 3)
        self.last = nn.Linear(3, 2)

    def forward(self, tokens, mask):
        x = self.middle(self.first(tokens))
        return self.last((x * mask[..., None]).sum(1))


class Guided(nn.Module):
    """Adds something to what the head makes of the input."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.middle = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x, extra):
        return self.last(self.middle(self.first(x)) + extra)


def cut(model, example, *share):
    place = {"head_until": "first", "tail_from": "last"}
    return split(model, **place, example=example, share=share)


def run(parts, batch):
    def exchange(activation):
        return parts.backbone(activation, companions_of(parts.head, batch))

    return run_client(parts.head, parts.tail, exchange, batch)


def test_one_tensor_under_two_names_is_two_inputs():
    ones, model = torch.ones(2, 4, dtype=torch.int64), Masked()
    example = {"tokens": ones, "mask": ones}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = cut(model, example, "mask")
    batch = {"tokens": torch.randint(5, (2, 4)), "mask": torch.eye(2, 4).long()}
    assert torch.equal(run(parts, batch), model(**batch))
    with pytest.raises(SplitError, match=r"the input 'mask' .*only if share names it"):
        cut(model, example)


def test_tokens_that_are_looked_up_are_the_data():
    ones = torch.ones(2, 4, dtype=torch.int64)
    with pytest.warns(UserWarning, match=WARNING.format("tokens")):
        cut(Masked(), {"tokens": ones, "mask": ones}, "tokens", "mask")


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 4)])
def test_a_grid_of_numbers_is_the_data(shape):
    example = {"x": torch.zeros(shape), "extra": torch.zeros(shape)}
    with pytest.warns(UserWarning, match=WARNING.format("extra")):
        cut(Guided(), example, "extra")


def test_a_number_or_a_few_for_each_sample_are_not():
    example = {"x": torch.zeros(2, 4), "extra": torch.zeros(2, 4)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut(Guided(), example, "extra")
