"""Sums that owners make of head and tail, where one of them claims nonsense."""

from functools import partial

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS
from lightsplit.errors import SealError
from lightsplit.protocol import Share, Total
from lightsplit.runtime import Averaging, ClientSide, WeightAveraging, masked_sum
from lightsplit.runtime.masked_sum import MaskedSum
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey(bytes(range(32)))
SGD = partial(torch.optim.SGD, lr=0.1)


@pytest.mark.parametrize("kind", [Averaging, WeightAveraging])
@pytest.mark.parametrize("claimed", [0, -4, -9])
def test_an_owner_that_claims_samples_away_changes_nothing(claimed, kind):
    side = ClientSide(
        nn.Linear(3, 4), nn.Linear(4, 2), CODECS.create("raw", shape=(4,)), SGD
    )
    averaging = kind(KEY, 4)
    averaging.begin(side)
    honest = Share(0, 0, *averaging.share(side, 4))
    forged = torch.zeros(len(honest.numbers) - masked_sum.CHECKS, dtype=torch.int64)
    forged[0] = claimed - 4
    hidden = Share(1, 0, *MaskedSum(KEY, "", 0).hide(forged))
    before = {name: one.clone() for name, one in side.state().items()}
    total = Total(0, 0, *masked_sum.added([honest, hidden]))
    with pytest.raises(SealError, match=f"{claimed} samples"):
        averaging.apply(side, total)
    assert all(torch.equal(side.state()[name], one) for name, one in before.items())
