"""Plain ``nn.Sequential`` models: cut along the containers, without tracing.

Sequential(features=Sequential(0, 1, 2), fc)  cut after features.1
──►  Sequential(features=Sequential(0, 1))  ·  Sequential(features=Sequential(2), fc)
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping

from torch import fx, nn


def is_plain(module: nn.Module) -> bool:
    """Return whether ``module`` does no more than call its children in a row."""
    return (
        isinstance(module, nn.Sequential)
        and type(module).forward is nn.Sequential.forward
    )


def chain(model: nn.Module, opened: Collection[int]) -> fx.Graph:
    """Return the graph of a sequential model.

    Args:
        model: The outermost container.
        opened: The ids of the containers to look into; others are called whole.
    """
    graph = fx.Graph()
    value = graph.placeholder("input")
    for path in _steps(model, opened, prefix=""):
        value = graph.call_module(path, (value,))
    graph.output(value)
    return graph


def nest(modules: Mapping[str, nn.Module]) -> nn.Sequential:
    """Return nested containers that hold ``modules`` under their dotted paths."""
    children: OrderedDict[str, nn.Module] = OrderedDict()
    inner: dict[str, dict[str, nn.Module]] = {}
    for path, module in modules.items():
        name, _, rest = path.partition(".")
        children[name] = module
        if rest:
            inner.setdefault(name, {})[rest] = module
    for name, members in inner.items():
        children[name] = nest(members)
    return nn.Sequential(children)


def _steps(container: nn.Module, opened: Collection[int], prefix: str) -> Iterator[str]:
    # Not named_children(), which leaves out a module's second appearance.
    for name, child in container._modules.items():
        if child is not None and id(child) in opened:
            yield from _steps(child, opened, prefix=f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
