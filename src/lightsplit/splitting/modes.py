"""Training and evaluation mode of a traced forward pass.

``torch.fx`` writes ``self.training`` of an opened module down as a constant. A model is
therefore traced in both modes. An argument that is true in one and false in the other
becomes the call of a ``ModeFlag``, which follows ``train()`` and ``eval()`` of the part
that holds it; any other difference is refused.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from lightsplit.splitting.graphs import Trace, UntraceableError, untraceable


class ModeFlag(nn.Module):
    """Returns whether it is in training mode; with ``inverted``, whether not."""

    def __init__(self, *, inverted: bool) -> None:
        super().__init__()
        self.inverted = inverted

    def forward(self) -> bool:
        """Return the mode."""
        return self.training != self.inverted


def reconcile(training: Trace, evaluation: Trace) -> Trace:
    """Return the training graph with a flag wherever the evaluation graph differs."""
    twins: dict[fx.Node, fx.Node] = {}
    # Only the last node is an output, so graphs of two lengths differ before their end.
    pairs = list(zip(training.graph.nodes, evaluation.graph.nodes, strict=False))
    for ours, theirs in pairs:
        try:
            _align(ours, theirs, _Blend(training, twins, ours))
        except _DifferentError:
            raise _differs(training, ours) from None
        twins[ours] = theirs
    for name, constant in training.extras.items():
        if isinstance(constant, torch.Tensor):
            _compare(training, constant, evaluation.extras.get(name))
    return training


class _DifferentError(Exception):
    """The two graphs cannot be made one."""


@dataclass(frozen=True)
class _Blend:
    """Blends the arguments of one node of the training graph with its twin's."""

    trace: Trace
    twins: dict[fx.Node, fx.Node]
    node: fx.Node

    def __call__(self, ours: Any, theirs: Any) -> Any:
        """Return ``ours`` with a flag in each place where only the truth differs."""
        if isinstance(ours, fx.Node):
            if self.twins[ours] is theirs:
                return ours
        elif type(ours) is type(theirs):
            return self._blend_alike(ours, theirs)
        raise _DifferentError

    def _blend_alike(self, ours: Any, theirs: Any) -> Any:
        if isinstance(ours, tuple | list) and len(ours) == len(theirs):
            items = [self(*pair) for pair in zip(ours, theirs, strict=True)]
            return tuple(items) if isinstance(ours, tuple) else items
        if isinstance(ours, dict) and ours.keys() == theirs.keys():
            return {key: self(value, theirs[key]) for key, value in ours.items()}
        if isinstance(ours, slice):
            return slice(
                self(ours.start, theirs.start),
                self(ours.stop, theirs.stop),
                self(ours.step, theirs.step),
            )
        if isinstance(ours, bool) and ours is not theirs:
            return self._flag(inverted=not ours)
        if ours == theirs:
            return ours
        raise _DifferentError

    def _flag(self, *, inverted: bool) -> fx.Node:
        owner = self.trace.owners.get(self.node.name, "")
        flag = ModeFlag(inverted=inverted)
        flag.train(self.trace.model.get_submodule(owner).training)
        target = ".".join(filter(None, (owner, _FLAG_NAMES[inverted])))
        self.trace.extras[target] = flag
        with self.trace.graph.inserting_before(self.node):
            return self.trace.graph.call_module(target)


_FLAG_NAMES = {False: "_is_training", True: "_is_evaluating"}


def _align(ours: fx.Node, theirs: fx.Node, blend: _Blend) -> None:
    if (ours.op, ours.target) != (theirs.op, theirs.target):
        raise _DifferentError
    args, kwargs = blend((ours.args, ours.kwargs), (theirs.args, theirs.kwargs))
    ours.args, ours.kwargs = args, kwargs


def _compare(trace: Trace, ours: torch.Tensor, theirs: object) -> None:
    if not isinstance(theirs, torch.Tensor) or not torch.equal(ours, theirs):
        raise untraceable(
            trace.model,
            "",
            "its forward pass makes a tensor that is another one at every call",
        )


def _differs(trace: Trace, node: fx.Node) -> UntraceableError:
    owner = trace.owners.get(node.name, "")
    return untraceable(
        trace.model,
        owner,
        "its forward pass takes other steps in training than in evaluation mode",
    )
