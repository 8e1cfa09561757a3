"""Sums that owners make of head and tail, where one of them claims nonsense."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Contract, Share
from lightsplit.runtime import (
    Averaging,
    ClientSide,
    WeightAveraging,
    masked_sum,
    share_numbers,
)
from lightsplit.runtime.masked_sum import MaskedSum
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey(bytes(range(32)))
SGD = partial(torch.optim.SGD, lr=0.1)
KINDS = {Averaging: "parallel", WeightAveraging: "splitfed-v1"}
ROWS = 4


def make_side():
    torch.manual_seed(0)
    codec = CODECS.create("raw", shape=(4,))
    return ClientSide(nn.Linear(3, 4), nn.Linear(4, 2), codec, SGD)


def trained(kind):
    """Return an averaging owner and its side after a step of its own."""
    side = make_side()
    averaging = kind(KEY, ROWS)
    averaging.begin(side)
    for place, parameter in enumerate(side.trainable):
        parameter.grad = torch.full_like(parameter, 2.0 ** -(place + 1))
        if kind is WeightAveraging:
            parameter.data += parameter.grad
    return averaging, side


def moved(kind, side):
    if kind is Averaging:
        return [parameter.grad for parameter in side.trainable]
    start = make_side().trainable
    return [now - then for now, then in zip(side.trainable, start, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("claimed", [2**50, 1, 0, -1, -4, -(2**40)])
def test_nothing_that_an_owner_sends_changes_what_another_part_weighs(claimed, kind):
    """It can only add numbers of its own, the first as much as any other."""
    averaging, side = trained(kind)
    expected = [one.clone() / 2 for one in moved(kind, side)]
    honest = Share(0, 0, *averaging.share(side, ROWS))
    part = torch.zeros(len(honest.numbers) - masked_sum.CHECKS, dtype=torch.int64)
    part[0] = claimed
    hostile = Share(1, 0, *MaskedSum(KEY, "", 0).hide(part))
    totals = masked_sum.totals([honest, hostile], 2 * ROWS)
    averaging.apply(side, totals[0])
    got = moved(kind, side)
    for mine, theirs in zip(got[1:], expected[1:], strict=True):
        torch.testing.assert_close(mine, theirs)
    own = 0.0 if kind is Averaging else claimed / masked_sum.SCALE / 2
    first = expected[0].flatten().clone()
    first[0] += own
    torch.testing.assert_close(got[0].flatten(), first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_no_samples_changes_nothing(kind):
    averaging, side = trained(kind)
    share = Share(0, 0, *averaging.share(side, ROWS))
    before = {name: one.clone() for name, one in side.state().items()}
    total = masked_sum.totals([share], 0)[0]
    with pytest.raises(ProtocolError, match="got 0: nothing was changed"):
        averaging.apply(side, total)
    assert all(torch.equal(side.state()[name], one) for name, one in before.items())


@pytest.mark.parametrize(("kind", "rounds"), KINDS.items())
def test_both_ends_know_how_long_a_share_is(kind, rounds):
    averaging, side = trained(kind)
    numbers, _ = averaging.share(side, ROWS)
    terms = dict.fromkeys(("model", "cut", "codec", "fingerprint"), "")
    shapes = dict.fromkeys(("activation_shape", "output_shape"), (4,))
    contract = Contract(
        **terms,
        **shapes,
        topology="u",
        heads="shared",
        codec_options={},
        code_size=4,
        seed=0,
        clients=2,
        batch_size=ROWS,
        turn_steps=1,
        rounds=rounds,
    )
    assert share_numbers(side, contract) == len(numbers)
