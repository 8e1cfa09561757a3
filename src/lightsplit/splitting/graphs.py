"""What tracing gives: a graph of calls, and where to find what it calls."""

from dataclasses import dataclass, field
from typing import Any

from torch import fx, nn

from lightsplit.errors import SplitError


class UntraceableError(SplitError):
    """The forward pass of an opened module cannot be written down as a graph."""


@dataclass(frozen=True)
class Trace:
    """The graph of a model's forward pass.

    Attributes:
        model: The model that was traced.
        graph: Its calls in the order of execution.
        extras: What nodes refer to and the model does not have: constants and flags.
        owners: The path of the module whose forward pass made a node, by node name.
        is_chain: Whether the model is a plain sequence of calls.
    """

    model: nn.Module
    graph: fx.Graph
    extras: dict[str, Any] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    is_chain: bool = False

    def attribute(self, target: str) -> Any:
        """Return the module or tensor that a node calls ``target``."""
        if target in self.extras:
            return self.extras[target]
        parent, _, name = target.rpartition(".")
        return getattr(self.model.get_submodule(parent), name)

    def is_floating(self, node: fx.Node) -> bool:
        """Return whether ``node`` reads something that belongs to whoever uses it.

        Those are parameters, buffers, constants and the mode.
        """
        is_flag = node.op == "call_module" and str(node.target) in self.extras
        return is_flag or node.op == "get_attr"

    def describe(self, node: fx.Node) -> str:
        """Return the name by which a user knows the value that ``node`` makes."""
        if node.op == "call_module":
            return repr(str(node.target))
        if node.op == "placeholder":
            return f"the input {str(node.target)!r}"
        owner = self.owners.get(node.name, "")
        return f"the result of {node.name}" + (f" in {owner!r}" if owner else "")


def untraceable(model: nn.Module, path: str, reason: str) -> UntraceableError:
    """Return the error for the module at ``path``, which cannot be opened."""
    kind = type(model.get_submodule(path)).__name__
    name = f"the {kind} {path!r}" if path else f"the model ({kind})"
    return UntraceableError(f"{name} cannot be cut inside because {reason}")
