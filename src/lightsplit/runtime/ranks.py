"""A backbone computed by several processes, each with a part of every batch.

    rank 0   weights, batch   ─► a part to each rank ─► outputs, joined
             output gradients ─► a part to each rank ─► gradients of the batch, joined,
                                                        and of the weights, added up
    others   compute what they are sent; they keep nothing beyond a batch

Only rank 0 has the optimizer, the checkpoint and the connections to the owners, so
nothing else in a server knows about the ranks. torch.distributed carries the tensors,
and ``torchrun`` starts the processes.

Several ranks add up sums in a different order than one rank, so results are equal up to
rounding. Dropout draws other numbers for every number of ranks.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.autograd.function import once_differentiable
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lightsplit import seeding
from lightsplit.errors import ConfigError, RunError
from lightsplit.runtime.side import ServerSide

_COMPUTING = timedelta(minutes=10)  # rank 0 waits for the others to compute a part
_IDLE = timedelta(days=365)  # they wait as long as the owners let rank 0 wait


class _Forward(NamedTuple):
    """Each rank gets this many rows of this shape, and a seed for its draws."""

    rows: list[int]
    shape: tuple[int, ...]
    dtype: torch.dtype
    seed: int


class _Backward(NamedTuple):
    """Each rank gets the gradient of its part of the last output."""


class _Stop(NamedTuple):
    """There is nothing left to compute."""


def rank_of_this_process() -> int:
    """Return the rank that ``torchrun`` has given this process; 0 without it."""
    return int(os.environ.get("RANK", "0"))


def number_of_ranks() -> int:
    """Return how many processes ``torchrun`` has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def device_of_this_rank(device: torch.device) -> torch.device:
    """Return the accelerator of this process among those of its machine.

    A device with a number is taken as it is, and so is any device without ``torchrun``.
    """
    own = os.environ.get("LOCAL_RANK")
    if device.type == "cpu" or device.index is not None or own is None:
        return device
    return torch.device(device.type, int(own))


@contextmanager
def joined_ranks(side: ServerSide) -> Iterator[None]:
    """Connect this process with the other ranks for as long as the block runs."""
    check_divisible(side)
    device = next(side.modules.parameters(), torch.zeros(())).device
    if device.type == "cuda":
        torch.cuda.set_device(device)  # nccl takes the current one for objects
    with _ends_the_run():
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            timeout=_IDLE if rank_of_this_process() else _COMPUTING,
        )
    try:
        yield
    finally:
        dist.destroy_process_group()


def check_divisible(side: ServerSide) -> None:
    """Refuse a backbone that cannot be computed in parts."""
    kind = side.normalisation.kind
    if any(_needs_whole(module, kind) for module in side.modules["backbone"].modules()):
        raise ConfigError(
            "several ranks compute a batch in parts, and batch normalisation needs it "
            "whole: take --statistics frozen, a model with group or layer "
            "normalisation, or one rank"
        )
    dtypes = {weight.dtype for weight in _weights(side)}
    if len(dtypes) > 1:
        names = ", ".join(sorted(map(str, dtypes)))
        raise ConfigError(f"several ranks need weights of one dtype, got {names}")


def _needs_whole(module: nn.Module, kind: str) -> bool:
    """Return whether a layer needs all samples of a batch at once in training."""
    if getattr(module, "track_running_stats", False):
        return kind != "frozen"
    return isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)


class Ranks:
    """Rank 0's way to let all ranks compute.

    Args:
        side: its ``compute`` is distributed; the other ranks have a side of the same
            form.
    """

    def __init__(self, side: ServerSide) -> None:
        self._side = side
        self._weights = _weights(side)
        self._own: _Part | None = None
        self._rows: list[int] = []

    def compute(self, batch: Tensor) -> Tensor:
        """Return the backbone's output for a batch, in training."""
        weights = _trainable(self._side)
        output: Tensor = _Spread.apply(self, batch, *weights)  # type: ignore[no-untyped-call]
        return output

    def close(self) -> None:
        """Let the other ranks end."""
        with suppress(RunError), _ends_the_run():  # they may be gone already
            _tell(_Stop())

    def forward(self, batch: Tensor) -> Tensor:
        """Return the joined outputs of all ranks."""
        parts = torch.tensor_split(batch.detach(), dist.get_world_size())
        self._rows = [len(part) for part in parts]
        seed = int(torch.randint(2**62, ()))
        with _ends_the_run():
            shape = tuple(batch.shape[1:])
            _tell(_Forward(self._rows, shape, batch.dtype, seed))
            dist.broadcast(parameters_to_vector(self._weights).detach(), src=0)
            _send(parts)
            self._own = _Part(self._side, parts[0], seed)
            output = self._own.output
            return torch.cat([output.detach(), *self._received(output)])

    def backward(self, gradient: Tensor) -> tuple[Tensor, list[Tensor | None]]:
        """Return the gradients of the batch and of the trainable weights."""
        if self._own is None:
            raise RunError("expected a forward pass before the backward pass")
        parts = torch.split(gradient, self._rows)
        with _ends_the_run():
            _tell(_Backward())
            _send(parts)
            batch, weights = self._own.differentiated(parts[0])
            joined = torch.cat([batch, *self._received(batch)])
            return joined, _added(weights, _trainable(self._side))

    def _received(self, own: Tensor) -> list[Tensor]:
        """Return the parts of the other ranks, which have the same shape as ``own``."""
        found = []
        for rank, rows in enumerate(self._rows[1:], start=1):
            if rows:
                part = own.new_empty((rows, *own.shape[1:]))
                dist.recv(part, src=rank)
                found.append(part)
        return found


def work(side: ServerSide) -> None:
    """Compute parts of batches until rank 0 says that there are no more."""
    side.set_training(True)
    part: _Part | None = None
    with _ends_the_run():
        while not isinstance(order := _told(), _Stop):
            if isinstance(order, _Forward):
                part = _computed(side, order)
            else:
                _go_back(side, part)


def _computed(side: ServerSide, order: _Forward) -> "_Part | None":
    """Take the weights and this rank's part of a batch, and send its output."""
    weights = _weights(side)
    flat = parameters_to_vector(weights).detach()
    dist.broadcast(flat, src=0)
    vector_to_parameters(flat, weights)
    rows = order.rows[dist.get_rank()]
    if not rows:
        return None
    batch = flat.new_empty((rows, *order.shape), dtype=order.dtype)
    dist.recv(batch, src=0)
    part = _Part(side, batch, order.seed)
    dist.send(part.output.detach().contiguous(), dst=0)
    return part


def _go_back(side: ServerSide, part: "_Part | None") -> None:
    """Send the gradient of this rank's part, and add up those of the weights."""
    weights = _trainable(side)
    own: list[Tensor | None] = [None] * len(weights)
    if part is not None:
        gradient = torch.empty_like(part.output)
        dist.recv(gradient, src=0)
        batch, own = part.differentiated(gradient)
        dist.send(batch.contiguous(), dst=0)
    _added(own, weights)


class _Part:
    """One rank's part of a batch, and the graph of what it computed."""

    def __init__(self, side: ServerSide, batch: Tensor, seed: int) -> None:
        self._batch = batch.detach().requires_grad_()
        self._weights = _trainable(side)
        with torch.enable_grad(), seeding.scope(seed, "rank", dist.get_rank()):
            self.output: Tensor = side.compute(self._batch)

    def differentiated(self, gradient: Tensor) -> tuple[Tensor, list[Tensor | None]]:
        """Return the gradients of the batch and of the weights, where there are any."""
        found = torch.autograd.grad(
            self.output,
            [self._batch, *self._weights],
            gradient,
            retain_graph=True,
            allow_unused=True,
        )
        batch = torch.zeros_like(self._batch) if found[0] is None else found[0]
        return batch, list(found[1:])


class _Spread(torch.autograd.Function):
    """Forward and backward pass of a batch, on all ranks."""

    @staticmethod
    def forward(ctx: Any, ranks: Ranks, batch: Tensor, *_weights: Tensor) -> Tensor:
        ctx.ranks = ranks
        return ranks.forward(batch)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, weights = ctx.ranks.backward(gradient.contiguous())
        return (None, batch, *weights)


def _weights(side: ServerSide) -> list[nn.Parameter]:
    return list(side.modules["backbone"].parameters())


def _trainable(side: ServerSide) -> list[nn.Parameter]:
    return [weight for weight in _weights(side) if weight.requires_grad]


def _added(
    own: Sequence[Tensor | None], weights: Sequence[Tensor]
) -> list[Tensor | None]:
    """Add up the ranks' gradients of each weight and return the sums, on rank 0.

    A weight that no rank has used gets no gradient, as in one process.
    """
    if not weights:
        return []
    parts = [
        torch.zeros_like(weight) if gradient is None else gradient
        for gradient, weight in zip(own, weights, strict=True)
    ]
    used = parts[0].new_tensor([gradient is not None for gradient in own])
    flat = torch.cat([*(part.flatten() for part in parts), used])
    dist.reduce(flat, dst=0)
    sizes = [*(part.numel() for part in parts), len(parts)]
    *sums, used = torch.split(flat, sizes)
    return [
        total.view_as(part) if is_used else None
        for total, part, is_used in zip(sums, parts, used.tolist(), strict=True)
    ]


def _tell(order: _Forward | _Backward | _Stop) -> None:
    dist.broadcast_object_list([order], src=0)


def _told() -> Any:
    order = [None]
    dist.broadcast_object_list(order, src=0)
    return order[0]


def _send(parts: Sequence[Tensor]) -> None:
    """Send each of the other ranks its part, unless it is empty."""
    for rank, part in enumerate(parts[1:], start=1):
        if len(part):
            dist.send(part.contiguous(), dst=rank)


@contextmanager
def _ends_the_run() -> Iterator[None]:
    """Report in one sentence that the ranks have lost their connection."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"the ranks of this server cannot go on together ({reason}); start all of "
            "them again with --resume"
        ) from error
