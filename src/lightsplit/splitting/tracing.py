"""A model's forward pass as a graph, opened only where a cut needs it.

``torch.fx`` runs the forward pass on stand-ins for the tensors and writes down what is
called. Every module is one node, except the ancestors of a cut: those are opened. So
control flow inside the others does not matter.

What may surprise: an input that is None by default is taken as absent, because fx could
not follow ``if mask is not None``; the head then has no such input.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx, nn

from lightsplit.splitting import sequential
from lightsplit.splitting.graphs import Trace, untraceable
from lightsplit.splitting.modes import reconcile

# What fx and a forward pass that is given stand-ins raise; fx's own is a ValueError.
_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


def trace(model: nn.Module, opened: frozenset[str]) -> Trace:
    """Return the graph of ``model`` with the modules at the ``opened`` paths opened."""
    modules = [model.get_submodule(path) for path in opened]
    ids = frozenset(id(module) for module in modules)
    if all(sequential.is_plain(module) for module in modules):
        return Trace(model, sequential.chain(model, ids), is_chain=True)
    with torch.random.fork_rng():
        training = _record(model, ids, training=True)
        evaluation = _record(model, ids, training=False)
    return reconcile(training, evaluation)


class _Tracer(fx.Tracer):
    """Opens the modules with the given ids and remembers which one it is in."""

    proxy_buffer_attributes = True

    def __init__(self, opened: frozenset[int]) -> None:
        super().__init__()
        self.opened = opened
        self.entered = [""]
        self.setting = _setting()

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:  # noqa: ARG002
        return id(m) not in self.opened

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        if _setting() != self.setting:
            raise RuntimeError("a no_grad or autocast block would be lost")
        return super().create_node(*args, **kwargs)

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        self.entered.append(self.path_of_module(m))
        result = super().call_module(m, forward, args, kwargs)
        self.entered.pop()  # not after a failure: the last one is where it happened
        return result


def _setting() -> tuple[bool, ...]:
    """Return what a ``with`` block can change and fx does not write down."""
    autocast = (torch.is_autocast_enabled(device) for device in ("cpu", "cuda"))
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), *autocast)


def _record(model: nn.Module, opened: frozenset[int], *, training: bool) -> Trace:
    tracer = _Tracer(opened)
    known = set(vars(model))
    absent = _absent_inputs(model)
    with _left_as_it_was(model):
        for module in model.modules():
            module.training = training
        try:
            graph = tracer.trace(model, concrete_args=absent or None)
        except _FAILURES as error:
            detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
            reason = f"its forward pass cannot be traced ({detail})"
            raise untraceable(model, tracer.entered[-1], reason) from error
        constants = {name: vars(model)[name] for name in set(vars(model)) - known}
    _drop_inputs(graph, set(absent))
    owners = {name: scope[0] for name, scope in tracer.node_name_to_scope.items()}
    return Trace(model, graph, extras=constants, owners=owners)


@contextmanager
def _left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Undo what tracing leaves on the modules: modes, constants, kept stand-ins."""
    before = [(module, dict(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


def _absent_inputs(model: nn.Module) -> dict[str, None]:
    """Return the inputs that are None by default.

    A stand-in is never None, so ``if mask is not None`` would go the wrong way.
    """
    inputs = inspect.signature(model.forward).parameters.values()
    return {each.name: None for each in inputs if each.default is None}


def _drop_inputs(graph: fx.Graph, names: set[str]) -> None:
    """Remove the inputs that were fixed, and fx's checks that they stay so."""
    for node in [node for node in graph.nodes if node.op == "placeholder"]:
        if node.name.rpartition("_")[0] in names and node.args == (None,):
            for check in list(node.users):
                graph.erase_node(check)
            graph.erase_node(node)
