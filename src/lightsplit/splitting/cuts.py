"""Where a model is cut, and what crosses there.

    input ─► head … head_until │ … backbone … │ tail_from … tail ─► output
                           front cut      back cut

The nodes of the graph go to the parts by the order of execution. Parameters, buffers
and constants go with the node that uses them. Taking one value out of a tuple that a
module returns goes with that module, so that a tensor crosses and not the tuple.
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, fx, nn

from lightsplit.errors import SplitError
from lightsplit.splitting.graphs import Trace

Argument = Literal["head_until", "tail_from"]


class CutRefusedError(SplitError):
    """One of the two cuts is not possible; ``argument`` says which."""

    def __init__(self, argument: Argument, path: str, reason: str) -> None:
        super().__init__(f"cannot cut at {argument}={path!r}: {reason}")
        self.argument = argument
        self.path = path


@dataclass(frozen=True)
class Plan:
    """Which nodes go to which part, and which one value crosses each cut."""

    trace: Trace
    members: list[list[fx.Node]]
    crossings: list[fx.Node]


def plan(trace: Trace, head_until: str, tail_from: str | None) -> Plan:
    """Return how to cut ``trace``, or raise ``CutRefusedError`` with the reason."""
    nodes = list(trace.graph.nodes)
    head = nodes.index(_find_call(trace, "head_until", head_until))
    starts = [head + 1]
    cuts: list[tuple[Argument, str]] = [("head_until", head_until)]
    if tail_from is not None:
        tail = nodes.index(_find_call(trace, "tail_from", tail_from))
        if tail <= head:
            raise _tail_too_early(head_until, tail_from)
        starts.append(tail)
        cuts.append(("tail_from", tail_from))
    part_of = _assign(trace, nodes, starts)
    members: list[list[fx.Node]] = [[] for _ in range(len(starts) + 1)]
    for node, part in part_of.items():
        members[part].append(node)
    if not any(node.op.startswith("call_") for node in members[1]):
        raise CutRefusedError(*cuts[-1], "nothing is left for the backbone")
    crossings = [
        _one_crossing(trace, part_of, part, cut) for part, cut in enumerate(cuts, 1)
    ]
    result = Plan(trace, members, crossings)
    _refuse_tied_state(result, cuts)
    return result


def read_by(trace: Trace, nodes: list[fx.Node]) -> dict[str, Any]:
    """Return the modules and tensors that ``nodes`` call or read, by their targets."""
    called = [node for node in nodes if node.op == "call_module"]
    read = (each for node in nodes for each in node.all_input_nodes)
    used = [*called, *filter(trace.is_floating, read)]
    return {str(node.target): trace.attribute(str(node.target)) for node in used}


def state_of(attributes: dict[str, Any]) -> dict[int | str, str]:
    """Return the names of all that must be kept and trained, by identity."""
    state: dict[int | str, str] = {}
    for target, value in attributes.items():
        if isinstance(value, nn.Module):
            named = value.state_dict(prefix=f"{target}.", keep_vars=True)
        else:
            named = {target: value}
        for name, each in named.items():
            state[id(each) if isinstance(each, Tensor) else name] = name
    return state


def tied_state(states: list[dict[int | str, str]]) -> Iterator[tuple[int, str]]:
    """Yield each part and name whose state an earlier part holds as well."""
    seen: dict[int | str, str] = {}
    for part, state in enumerate(states):
        for key, name in state.items():
            if key in seen:
                first = seen[key]
                yield part, repr(name) if first == name else f"{first!r} as {name!r}"
        seen |= state


def _find_call(trace: Trace, argument: Argument, path: str) -> fx.Node:
    calls = [
        node
        for node in trace.graph.nodes
        if node.op == "call_module" and not trace.is_floating(node)
    ]
    module = trace.model.get_submodule(path)
    found: list[fx.Node] = [node for node in calls if node.target == path] or [
        node for node in calls if trace.attribute(str(node.target)) is module
    ]
    if not found:
        raise CutRefusedError(argument, path, "the forward pass never calls it")
    if len(found) > 1:
        reason = f"the forward pass calls it {len(found)} times"
        raise CutRefusedError(argument, path, reason)
    return found[0]


def _tail_too_early(head_until: str, tail_from: str) -> CutRefusedError:
    reason = f"the tail must start after the head's last module, {head_until!r}"
    return CutRefusedError("tail_from", tail_from, reason)


def refuse_nested(head_until: str, tail_from: str) -> None:
    """Refuse a tail that starts inside the head's last module, or around it."""
    head, tail = f"{head_until}.", f"{tail_from}."
    if head.startswith(tail) or tail.startswith(head):
        raise _tail_too_early(head_until, tail_from)


def _assign(
    trace: Trace, nodes: list[fx.Node], starts: list[int]
) -> dict[fx.Node, int]:
    part_of: dict[fx.Node, int] = {}
    for position, node in enumerate(nodes):
        if trace.is_floating(node):
            continue
        if node.op == "placeholder":
            part_of[node] = 0
        elif _unpacks(node):
            part_of[node] = part_of[node.all_input_nodes[0]]
        else:
            part_of[node] = sum(position >= start for start in starts)
    return part_of


def _unpacks(node: fx.Node) -> bool:
    """Return whether ``node`` takes one item of a tuple that a module returned."""

    def takes_item(user: fx.Node) -> bool:
        return user.target is operator.getitem and isinstance(user.args[1], int)

    if not takes_item(node):
        return False
    source = node.all_input_nodes[0]
    return source.op == "call_module" and all(map(takes_item, source.users))


def _one_crossing(
    trace: Trace, part_of: dict[fx.Node, int], part: int, cut: tuple[Argument, str]
) -> fx.Node:
    crossing = [
        node
        for node, made_in in part_of.items()
        if made_in < part and any(part_of[user] >= part for user in node.users)
    ]
    if len(crossing) == 1:
        return crossing[0]
    if not crossing:
        raise CutRefusedError(*cut, "nothing that is computed before is used after it")
    names = ", ".join(trace.describe(node) for node in crossing)
    reason = f"{len(crossing)} values cross there and only one may: {names}"
    raise CutRefusedError(*cut, reason)


def _refuse_tied_state(result: Plan, cuts: list[tuple[Argument, str]]) -> None:
    saved = set(result.trace.model.state_dict())
    states = [
        {
            key: name
            for key, name in state_of(read_by(result.trace, nodes)).items()
            if name in saved
        }
        for nodes in result.members
    ]
    for part, names in tied_state(states):
        reason = f"the parts on both sides use {names}, and tied state cannot be cut"
        raise CutRefusedError(*cuts[part - 1], reason)
