"""Makes the modules of the parts from a plan.

The parts hold the model's own modules and parameters under the model's own names. Two
things are copied, so that a part's mode is its own: flags, and modules without state
that more than one part uses.
"""

import copy
from collections.abc import Iterable
from typing import Any

from torch import Tensor, fx, nn

from lightsplit.splitting import sequential
from lightsplit.splitting.cuts import Plan, read_by
from lightsplit.splitting.graphs import Trace
from lightsplit.splitting.modes import ModeFlag

_CLASS_NAMES = ("Head", "Backbone", "Tail")


def assemble(plan: Plan) -> list[nn.Module]:
    """Return the parts in order."""
    taken: set[int] = set()
    parts: list[nn.Module] = []
    for index, nodes in enumerate(plan.members):
        attributes = _own(read_by(plan.trace, nodes), taken)
        if plan.trace.is_chain:
            part: nn.Module = sequential.nest(attributes)
        else:
            part = _PartModule(attributes, _graph(plan, index), _CLASS_NAMES[index])
            _hide(part, _unsaved(plan.trace, attributes))
        _set_modes(part, plan.trace.model)
        parts.append(part)
    return parts


class _PartModule(fx.GraphModule):
    """A graph module whose copies also leave unsaved tensors out of the state."""

    def __deepcopy__(self, memo: dict[int, Any]) -> fx.GraphModule:
        copied = super().__deepcopy__(memo)
        saved = self.state_dict()
        _hide(copied, (name for name, _ in self.named_buffers() if name not in saved))
        return copied


def _own(attributes: dict[str, Any], taken: set[int]) -> dict[str, Any]:
    own = {
        target: copy.deepcopy(value)
        if isinstance(value, ModeFlag) or id(value) in taken
        else value
        for target, value in attributes.items()
    }
    taken |= {id(each) for each in attributes.values() if isinstance(each, nn.Module)}
    return own


def _graph(plan: Plan, index: int) -> fx.Graph:
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}

    def local(node: fx.Node) -> fx.Node:
        if node not in copies:
            copies[node] = graph.node_copy(node, local)
        return copies[node]

    if index > 0:
        entry = plan.crossings[index - 1]
        copies[entry] = graph.placeholder(entry.name)
    for node in plan.members[index]:
        local(node)
    if index < len(plan.crossings):
        graph.output(local(plan.crossings[index]))
    return graph


def _unsaved(trace: Trace, attributes: dict[str, Any]) -> list[str]:
    saved = trace.model.state_dict()
    return [
        target
        for target, value in attributes.items()
        if isinstance(value, Tensor) and target not in saved
    ]


def _hide(part: nn.Module, names: Iterable[str]) -> None:
    """Keep the buffers called ``names`` out of the state dict."""
    for name in list(names):
        parent, _, field = name.rpartition(".")
        holder = part.get_submodule(parent)
        tensor = getattr(holder, field)
        delattr(holder, field)
        holder.register_buffer(field, tensor, persistent=False)


def _set_modes(part: nn.Module, model: nn.Module) -> None:
    """Give the containers that were made anew the modes of the model's own."""
    modes = {name: module.training for name, module in model.named_modules()}
    for name, module in part.named_modules():
        module.training = modes.get(name, module.training)
