"""Owners of a round average the gradients of the head and tail that they share.

    gradients · n_i / B ─► Share ─► [server adds] ─► Total, N ─► · B / N ─► one update

Every owner starts a round with the same side, gets the same mean over the round's N
samples, and makes the same update, so all sides stay equal, bit for bit. Running
statistics of the head become the mean of the owners' updated statistics.

The server counts N from the owners' codes: an owner could claim any number of samples
in a part that only owners can read, and so change what the parts of others weigh.

The sum is computed in integers and so exact (``masked_sum``): the mean is the same in
any order of arrival, in one process and over a network. Each part is rounded by at most
2**-37 of the gradient's unit, times the contract's batch size B over the owner's own
n_i.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lightsplit.errors import ProtocolError
from lightsplit.protocol import Request, Share, Total
from lightsplit.runtime.masked_sum import CHECKS, MaskedSum, from_whole, to_whole
from lightsplit.runtime.side import Side
from lightsplit.transports import Send
from lightsplit.transports.sealing import SealingKey


class Averaging:
    """Averages the gradients of one owner's side with those of the others.

    Args:
        key: the same at every owner.
        batch_size: the largest batch of a step, B.

    Attributes:
        run: the run's name.
        number: of the round under way.
    """

    def __init__(self, key: SealingKey, batch_size: int) -> None:
        self._key = key
        self._batch_size = batch_size
        self.run = ""
        self.number = 0
        self._before: list[Tensor] = []

    def begin(self, side: Side) -> None:
        """Remember the statistics that a step will change."""
        self._before = [one.clone() for one in _moving(side)]

    def share(self, side: Side, samples: int) -> tuple[Tensor, Tensor]:
        """Return this owner's part of the round's sum, hidden, and its nonce."""
        part = self._part(side, samples)
        return MaskedSum(self._key, self.run, self.number).hide(part)

    def apply(self, side: Side, total: Total) -> bool:
        """Give ``side`` the mean gradients and statistics of the round.

        Return whether an update with them is due; in one process a side that several
        owners hold is updated only once.
        """
        found = self._read(total)
        trainable, moving = side.trainable, _moving(side)
        present = found[: len(trainable)].tolist()
        weight = self._batch_size / total.samples
        means = from_whole(found[len(trainable) :]) * weight
        sizes = [one.numel() for one in (*trainable, *moving)]
        parts = torch.split(means, sizes)
        for parameter, count, mean in zip(trainable, present, parts, strict=False):
            is_there = bool(count) or bool(mean.any())  # one may count another away
            parameter.grad = _shaped(mean, parameter) if is_there else None
        changes = parts[len(trainable) :]
        for buffer, before, change in zip(moving, self._before, changes, strict=True):
            buffer.data.copy_(before + _shaped(change, before))
        return True

    def exchange(self, side: Side, send: Send, at: tuple[int, int], rows: int) -> Total:
        """Send this owner's part and return the sum of all parts."""
        numbers, nonce = self.share(side, rows)
        with torch.enable_grad():
            return _as_total(Share(*at, numbers, nonce), send)

    def _read(self, total: Total) -> Tensor:
        """Return the sum of all parts."""
        if total.samples < 1:
            raise ProtocolError(
                f"expected the samples of the sum of round {self.number}, got "
                f"{total.samples}: nothing was changed here"
            )
        sums = MaskedSum(self._key, self.run, self.number)
        return sums.read(total.numbers, total.nonces)

    def _part(self, side: Side, samples: int) -> Tensor:
        weight = samples / self._batch_size
        gradients = [one.grad for one in side.trainable]
        changes = [
            now.detach() - before
            for now, before in zip(_moving(side), self._before, strict=True)
        ]
        rows = [
            torch.zeros(parameter.numel()) if gradient is None else gradient.flatten()
            for parameter, gradient in zip(side.trainable, gradients, strict=True)
        ]
        numbers = _row([*rows, *(change.flatten() for change in changes)])
        present = torch.tensor([one is not None for one in gradients]).long()
        return torch.cat([present, to_whole(numbers * weight)])


def share_of_gradients(side: Side) -> int:
    """Return how many numbers an owner's share of a sum of gradients has."""
    tensors = (*side.trainable, *_moving(side))
    return len(side.trainable) + sum(one.numel() for one in tensors) + CHECKS


def _moving(side: Side) -> list[Tensor]:
    """Return the statistics of a side that are averaged: the floating-point ones."""
    return [one for one in side.statistics if one.is_floating_point()]


def _row(tensors: Sequence[Tensor]) -> Tensor:
    found = [one.detach().cpu().double() for one in tensors]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.float64)


def _shaped(row: Tensor, like: Tensor) -> Tensor:
    return row.reshape(like.shape).to(like)


def _as_total(request: Request, send: Send) -> Total:
    reply = send(request)
    asked = (request.client, request.step)
    if not isinstance(reply, Total) or (reply.client, reply.step) != asked:
        raise ProtocolError(f"expected the round's sum, got {type(reply).__name__}")
    return reply
