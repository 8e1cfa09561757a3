"""Is split really the same as unsplit? A proof on the user's own model.

The whole model and a copy of it that is split with the raw codec are trained on the
same batches; afterwards every weight and buffer must be the same up to rounding.

Dropout draws from the step's own seeds, one for each part. The whole model is run as
its author wrote it; two hooks reseed it where the cuts lie, so that it draws the same
masks.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.codecs import CODECS
from lightsplit.runtime import Client, ClientSide, OptimizerFactory, Server, ServerSide
from lightsplit.splitting import SplitModel, merge, split

TOLERANCE = 1e-5
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Verification:
    """How far the split model ended from the whole one.

    Attributes:
        largest_difference: over all weights and buffers, relative to the tensor's
            largest absolute value where that is above 1.
        where: name of the tensor with that difference.
        change: how far training moved the weights; 0 would prove nothing.
    """

    largest_difference: float
    where: str
    change: float
    steps: int

    @property
    def is_same(self) -> bool:
        """Say whether nothing but rounding differs, and training happened."""
        return self.largest_difference <= TOLERANCE < self.change


def verify(
    model: nn.Module,
    batches: list[Batch],
    *,
    optimizer: OptimizerFactory,
    head_until: str,
    tail_from: str | None,
    seed: int = 0,
) -> Verification:
    """Train ``model`` whole and split on ``batches`` and compare; it stays untouched.

    ``tail_from`` None leaves tail and labels with the server (vanilla topology).
    """
    parts = split(copy.deepcopy(model), head_until=head_until, tail_from=tail_from)
    before = copy.deepcopy(model)
    whole = copy.deepcopy(model)
    _train_whole(
        whole, batches, optimizer(whole.parameters()), head_until, tail_from, seed
    )
    _train_split(parts, batches, optimizer, seed)
    difference, where = _largest_difference(
        whole.state_dict(), merge(parts).state_dict()
    )
    change, _ = _largest_difference(_weights(before), _weights(whole))
    return Verification(difference, where, change, len(batches))


def _train_split(
    parts: SplitModel, batches: list[Batch], optimizer: OptimizerFactory, seed: int
) -> None:
    with torch.no_grad():
        parts.head.eval()
        shape = tuple(parts.head(batches[0][0][:2]).shape[1:])
    codec = CODECS.create("raw", shape=shape)
    server = Server(ServerSide(parts.backbone, codec, optimizer), seed=seed)
    side = ClientSide(parts.head, parts.tail, codec, optimizer)
    client = Client(side, server.handle, seed=seed)
    for inputs, labels in batches:
        client.step(inputs, labels)


def _train_whole(
    model: nn.Module,
    batches: list[Batch],
    optimizer: torch.optim.Optimizer,
    head_until: str,
    tail_from: str | None,
    seed: int,
) -> None:
    model.train()
    for step, (inputs, labels) in enumerate(batches):
        with _cut_seeds(model, head_until, tail_from, seed, step):
            loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@contextmanager
def _cut_seeds(
    model: nn.Module, head_until: str, tail_from: str | None, seed: int, step: int
) -> Iterator[None]:
    """Seed head, backbone and tail of one forward pass as client and server do."""

    def reseed(part: str) -> None:
        torch.manual_seed(seeding.derive(seed, 0, step, part))

    hooks = [
        model.get_submodule(head_until).register_forward_hook(
            lambda *_: reseed("server")
        )
    ]
    if tail_from is not None:
        hooks.append(
            model.get_submodule(tail_from).register_forward_pre_hook(
                lambda *_: reseed("tail")
            )
        )
    try:
        with seeding.scope(seed, 0, step, "head"):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters()}


def _largest_difference(
    first: dict[str, Tensor], second: dict[str, Tensor]
) -> tuple[float, str]:
    differences = {name: _difference(first[name], second[name]) for name in first}
    where = max(differences, key=differences.__getitem__)
    return differences[where], where


def _difference(first: Tensor, second: Tensor) -> float:
    if not first.numel():
        return 0.0
    first, second = first.double(), second.double()
    return float((first - second).abs().max() / first.abs().max().clamp_min(1))
