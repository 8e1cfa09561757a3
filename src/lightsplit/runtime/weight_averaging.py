"""Weights that owners trained from the same start, averaged by samples (FedAvg).

    w0 ─► steps of owner i ─► w_i            mean = w0 + Σ n_i · (w_i − w0) / N

Running statistics are averaged like weights; a counter of batches is the mean, rounded.
An optimizer's state is not averaged. It starts afresh in every round, as in FedAvg.

Owners average head and tail by a sum that the server computes but cannot read
(``masked_sum``): their parts are changes times n_i over the contract's batch size B,
rounded by at most 2**-37 · B / n_i. The server averages its own copies in float64, in
the order of the owners' numbers.
"""

import torch
from torch import Tensor

from lightsplit.protocol import Contract, Total
from lightsplit.runtime.averaging import Averaging, share_of_gradients
from lightsplit.runtime.masked_sum import CHECKS, from_whole, to_whole
from lightsplit.runtime.optimizer_state import is_optimizer_state
from lightsplit.runtime.side import Side, State


class RoundStart:
    """The weights and statistics with which all owners begin a round.

    Args:
        side: at the beginning; its optimizer starts afresh.
    """

    def __init__(self, side: Side) -> None:
        self._state: State = {
            name: tensor.detach().clone()
            for name, tensor in side.state().items()
            if not is_optimizer_state(name)
        }
        self._before = [one.detach().clone() for one in _averaged(side)]
        side.load_optimizer({})

    def put_into(self, side: Side) -> None:
        """Reset a side to the beginning of the round, with a new optimizer."""
        side.load(self._state)

    def changes(self, side: Side) -> Tensor:
        """Return a side's changes since the start, in one row of float64."""
        rows = [
            (now.detach().double() - before.double()).flatten().cpu()
            for now, before in zip(_averaged(side), self._before, strict=True)
        ]
        return torch.cat(rows) if rows else torch.zeros(0, dtype=torch.float64)

    def add_to(self, side: Side, means: Tensor) -> None:
        """Give a side the weights of the start, changed by ``means``."""
        self.put_into(side)
        sizes = [one.numel() for one in self._before]
        for tensor, before, mean in zip(
            _averaged(side), self._before, torch.split(means, sizes), strict=True
        ):
            moved = before.double() + mean.reshape(before.shape).to(before.device)
            whole = moved if tensor.is_floating_point() else moved.round()
            tensor.data.copy_(whole)


class CopiesMean:
    """The mean of the copies of one side, one for each owner of a round.

    Args:
        side: at the beginning of the round, and of its end.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self.start = RoundStart(side)
        self._sum: Tensor | None = None
        self._samples = 0

    def add(self, copy: Side, samples: int) -> None:
        """Add a copy that was trained on ``samples`` samples, in the owners' order."""
        part = self.start.changes(copy) * samples
        self._sum = part if self._sum is None else self._sum + part
        self._samples += samples

    def apply(self) -> None:
        """Set the side to the mean of the copies; without any, to the start."""
        if self._sum is None:
            self.start.put_into(self._side)
        else:
            self.start.add_to(self._side, self._sum / self._samples)


class WeightAveraging(Averaging):
    """Averages one owner's head and tail with the others', at the end of a round.

    Its arguments are those of Averaging.
    """

    _start: RoundStart

    def begin(self, side: Side) -> None:
        """Remember the weights that every owner begins the round with."""
        self._start = RoundStart(side)

    def begin_again(self, side: Side) -> None:
        """Reset a side that several owners hold to the beginning of the round."""
        self._start.put_into(side)

    def apply(self, side: Side, total: Total) -> bool:
        """Give ``side`` the mean weights and statistics; no further update is due."""
        found = self._read(total)
        weight = self._batch_size / total.samples
        self._start.add_to(side, from_whole(found) * weight)
        return False

    def _part(self, side: Side, samples: int) -> Tensor:
        return to_whole(self._start.changes(side) * (samples / self._batch_size))


def share_numbers(side: Side, contract: Contract) -> int:
    """Return how many numbers an owner's share has: of gradients, or of weights."""
    if contract.is_parallel:
        return share_of_gradients(side)
    return sum(one.numel() for one in _averaged(side)) + CHECKS


def _averaged(side: Side) -> list[Tensor]:
    return [*side.trainable, *side.statistics]
