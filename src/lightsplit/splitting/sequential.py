"""Plain ``nn.Sequential`` models: cut along the containers, without running them.

Sequential(features=Sequential(0, 1, 2), fc)  cut after features.1
──►  Sequential(features=Sequential(0, 1))  ·  Sequential(features=Sequential(2), fc)
"""

import copy
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise

from torch import nn

from lightsplit.splitting.cuts import BACKBONE, HEAD, TAIL, Place, shared_state


def is_plain(module: nn.Module) -> bool:
    """Return whether ``module`` only calls its children one after another."""
    return (
        isinstance(module, nn.Sequential)
        and type(module).forward is nn.Sequential.forward
    )


def is_chain(model: nn.Module, *paths: str | None) -> bool:
    """Return whether ``model`` can be cut at the paths along plain containers."""
    return all(is_plain(model.get_submodule(path)) for path in _opened(*paths))


def slices(model: nn.Module, place: Place) -> list[nn.Sequential]:
    """Return the parts of a chain, with the model's own modules and names."""
    steps = list(_steps(model, _opened(place.head_until, place.tail_from)))
    borders = [0, steps.index(place.head_until) + 1, len(steps)]
    if place.tail_from is not None:
        borders.insert(2, steps.index(place.tail_from))
    if borders[1] > borders[2]:
        raise place.tail_too_early()
    if borders[1] == borders[2]:
        segment = HEAD if place.tail_from is None else TAIL
        raise place.refused(segment, "no module is left for the backbone")
    chosen = [
        {path: model.get_submodule(path) for path in steps[start:stop]}
        for start, stop in pairwise(borders)
    ]
    _refuse_ties(chosen, place)
    taken: set[int] = set()
    parts = []
    for modules in chosen:
        parts.append(nest(_own(modules, taken)))
        _set_modes(parts[-1], model)
    return parts


def calls(model: nn.Module, *, is_tail: bool, prefix: str = "") -> Iterator[str]:
    """Yield the modules of a chain in the order of their calls.

    A container comes after what it holds if the head may end with it, and before if
    the tail may start with it.
    """
    for path in _steps(model, _opened(f"{prefix}.x" if prefix else "x")):
        if not path.startswith(f"{prefix}." if prefix else ""):
            continue
        if is_tail:
            yield path
        if is_plain(model.get_submodule(path)):
            yield from calls(model, is_tail=is_tail, prefix=path)
        if not is_tail:
            yield path


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


def _opened(*paths: str | None) -> set[str]:
    """Return the containers around the modules at the paths."""
    split = [path.split(".") for path in paths if path is not None]
    return {".".join(names[:count]) for names in split for count in range(len(names))}


def _steps(
    model: nn.Module, opened: Collection[str], prefix: str = ""
) -> Iterator[str]:
    # named_children() would leave out the second appearance of a module.
    for name, _ in model.named_modules(remove_duplicate=False):
        if not name or "." in name:  # itself, or a module further down
            continue
        path = f"{prefix}{name}"
        if path in opened:
            yield from _steps(model.get_submodule(name), opened, f"{path}.")
        else:
            yield path


def _own(modules: dict[str, nn.Module], taken: set[int]) -> dict[str, nn.Module]:
    """Return the modules, copied if another part has taken them."""
    own = {
        path: copy.deepcopy(module) if id(module) in taken else module
        for path, module in modules.items()
    }
    taken |= {id(module) for module in modules.values()}
    return own


def state_of(modules: Mapping[str, nn.Module]) -> dict[int, str]:
    """Return the names of all parameters and saved buffers, by identity."""
    return {
        id(state): name
        for path, module in modules.items()
        for name, state in module.state_dict(prefix=f"{path}.", keep_vars=True).items()
    }


def tied_state(states: list[dict[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield each part and name whose state an earlier part also holds."""
    seen: dict[int, str] = {}
    for part, state in enumerate(states):
        for key, name in state.items():
            if key in seen:
                first = seen[key]
                yield part, repr(name) if first == name else f"{first!r} as {name!r}"
        seen |= state


def _refuse_ties(chosen: list[dict[str, nn.Module]], place: Place) -> None:
    for part, names in tied_state([state_of(modules) for modules in chosen]):
        raise place.refused(HEAD if part == BACKBONE else TAIL, shared_state(names))


def _set_modes(part: nn.Module, model: nn.Module) -> None:
    """Give the new containers the modes of the model's own containers."""
    modes = {name: module.training for name, module in model.named_modules()}
    for name, module in part.named_modules():
        module.training = modes.get(name, module.training)
