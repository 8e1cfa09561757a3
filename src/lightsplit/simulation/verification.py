"""A proof, on the user's own model, that split training equals unsplit training.

The whole model and a copy of it that is split with the raw codec are trained on the
same batches, step by step beside each other. The outputs and gradients of every step,
and afterwards every weight, every buffer and every state of the optimizer must be the
same up to rounding.

Dropout draws from the step's own seeds, one for each part. The whole model is run as
its author wrote it; two hooks reseed it where the cuts lie, so that it draws the same
masks.
"""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.codecs import CODECS
from lightsplit.nesting import tensors_in
from lightsplit.runtime import (
    Client,
    ClientSide,
    OptimizerFactory,
    Secret,
    Server,
    ServerSide,
)
from lightsplit.splitting import SplitModel, call, merge, split
from lightsplit.tasks import Loss

TOLERANCE = 1e-5
Batch = tuple[Any, Any]
Slots = dict[str, dict[str, Tensor]]  # states of an optimizer: by kind, by parameter


@dataclass(frozen=True)
class Verification:
    """How far the split model ended from the whole one.

    Attributes:
        largest_difference: over everything that is compared. It is relative to the
            tensor's largest absolute value where that is above 1; for states of the
            optimizer to the largest one of the same kind.
        where: name of the tensor with that difference.
        by_kind: the largest difference of outputs, gradients, weights and buffers, and
            states of the optimizer.
        change: how far training moved the weights; without a change the comparison
            proves nothing.
    """

    largest_difference: float
    where: str
    change: float
    steps: int
    by_kind: dict[str, float]

    @property
    def is_same(self) -> bool:
        """Return whether nothing but rounding differs, and training happened."""
        return self.largest_difference <= TOLERANCE < self.change

    @property
    def is_exact(self) -> bool:
        """Return whether every bit is the same."""
        return self.largest_difference == 0


def verify(  # noqa: PLR0913
    model: nn.Module,
    batches: list[Batch],
    *,
    optimizer: OptimizerFactory,
    head_until: str,
    tail_from: str | None,
    loss: Loss = cross_entropy,
    seed: int = 0,
    share: tuple[str, ...] = (),
) -> Verification:
    """Train copies of ``model``, whole and split, on ``batches`` and compare them.

    Args:
        model: stays as it is.
        batches: inputs and labels, of any nesting.
        optimizer: makes one over parameters.
        head_until: the last module of the head.
        tail_from: the first module of the tail; None leaves tail and labels with the
            server (vanilla topology).
        loss: of the model's output and the labels.
        seed: of dropout.
        share: names of inputs that the server gets.
    """
    trial = _Trial(batches, optimizer, loss, seed)
    copied, whole = copy.deepcopy(model), copy.deepcopy(model)
    parts = split(
        copied,
        head_until=head_until,
        tail_from=tail_from,
        example=batches[0][0],
        share=share,
    )
    own = trial.whole(whole, head_until, tail_from)
    theirs = trial.split(parts)
    gradients: dict[str, float] = {}
    for step, _ in enumerate(zip(own.steps, theirs.steps, strict=True)):
        gradients |= _differences(_gradients(whole, step), _gradients(copied, step))
    found = {
        "outputs": _differences(own.outputs, theirs.outputs),
        "gradients": gradients,
        "weights and buffers": _differences(
            whole.state_dict(), merge(parts).state_dict()
        ),
        "optimizer": _slot_differences(
            _slots(whole, own.optimizers), _slots(copied, theirs.optimizers)
        ),
    }
    every = {name: size for kind in found.values() for name, size in kind.items()}
    where = max(every, key=every.__getitem__)
    change = max(_differences(_weights(model), _weights(whole)).values(), default=0.0)
    by_kind = {kind: max(one.values(), default=0.0) for kind, one in found.items()}
    return Verification(every[where], where, change, len(batches), by_kind)


class _Training(NamedTuple):
    """A training.

    Attributes:
        steps: each is made when it is asked for.
        outputs: of the steps so far.
        optimizers: of its ends.
    """

    steps: Iterator[Any]
    outputs: dict[str, Tensor]
    optimizers: list[torch.optim.Optimizer]


@dataclass(frozen=True)
class _Trial:
    """The training that both models go through."""

    batches: list[Batch]
    optimizer: OptimizerFactory
    loss: Loss
    seed: int

    def split(self, parts: SplitModel) -> _Training:
        """Return the training of the parts, at client and server."""
        loss, outputs = self._kept_outputs()
        with torch.no_grad():
            parts.head.eval()
            shape = tuple(parts.head(self.batches[0][0]).shape[1:])
        codec = CODECS.create("raw", shape=shape)
        server_side = ServerSide(parts.backbone, codec, self.optimizer)
        server = Server(server_side, seed=self.seed, loss=loss)
        side = ClientSide(parts.head, parts.tail, codec, self.optimizer)
        client = Client(side, server.handle, secret=Secret(self.seed), loss=loss)
        steps = (client.step(inputs, labels) for inputs, labels in self.batches)
        found = (side.optimizer, server_side.optimizer)
        optimizers = [each for each in found if each is not None]
        return _Training(steps, outputs, optimizers)

    def whole(
        self, model: nn.Module, head_until: str, tail_from: str | None
    ) -> _Training:
        """Return the training of the model as its author wrote it."""
        loss_of, outputs = self._kept_outputs()
        optimizer = self.optimizer(model.parameters())
        model.train()

        def steps() -> Iterator[None]:
            for step, (inputs, labels) in enumerate(self.batches):
                with _cut_seeds(model, head_until, tail_from, self.seed, step):
                    loss = loss_of(call(model, inputs), labels)
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                yield

        return _Training(steps(), outputs, [optimizer])

    def _kept_outputs(self) -> tuple[Loss, dict[str, Tensor]]:
        """Return the loss, and where it keeps the outputs that it is given."""
        kept: dict[str, Tensor] = {}
        steps = count()

        def loss(output: Any, labels: Any) -> Tensor:
            step = next(steps)
            for place, tensor in enumerate(tensors_in(output)):
                kept[f"output {place} of step {step}"] = tensor.detach().clone()
            return self.loss(output, labels)

        return loss, kept


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


def _gradients(model: nn.Module, step: int) -> dict[str, Tensor]:
    return {
        f"gradient of {name} at step {step}": weight.grad
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters()}


def _slots(model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> Slots:
    """Return what the optimizers remember of each parameter of ``model``."""
    names: dict[Tensor, str] = {one: name for name, one in model.named_parameters()}
    found: Slots = {}
    for optimizer in optimizers:
        for parameter, slots in optimizer.state.items():
            for kind, value in slots.items():
                if value is not None:
                    by_name = found.setdefault(kind, {})
                    by_name[names[parameter]] = torch.as_tensor(value)
    return found


def _slot_differences(first: Slots, second: Slots) -> dict[str, float]:
    """Return how far the states differ; one that a side lacks differs infinitely."""
    found: dict[str, float] = {}
    for kind in first.keys() | second.keys():
        mine, theirs = first.get(kind, {}), second.get(kind, {})
        scale = max((_largest(one) for one in mine.values()), default=0.0) or 1.0
        for name in mine.keys() | theirs.keys():
            is_both = name in mine and name in theirs
            found[f"{kind} of {name}"] = (
                _distance(mine[name], theirs[name]) / scale if is_both else math.inf
            )
    return found


def _differences(
    first: dict[str, Tensor], second: dict[str, Tensor]
) -> dict[str, float]:
    """Return how far tensors differ; one that a side lacks differs infinitely."""
    return {
        name: _difference(first[name], second[name])
        if name in first and name in second
        else math.inf
        for name in first.keys() | second.keys()
    }


def _difference(first: Tensor, second: Tensor) -> float:
    """Return how far two tensors differ, relative to large numbers."""
    if torch.equal(first, second):
        return 0.0
    return _distance(first, second) / max(_largest(first), 1.0)


def _largest(tensor: Tensor) -> float:
    return float(tensor.double().abs().max()) if tensor.numel() else 0.0


def _distance(first: Tensor, second: Tensor) -> float:
    return _largest(first.double() - second.double())
