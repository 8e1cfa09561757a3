"""Tied weights in a checkpoint: saved once, under their first name, loaded under all.

    head.wte.weight ─┐                       ┌─► head.wte.weight
                     ├─► head.wte.weight ────┤
    tail.fc.weight ──┘   in the state_dict   └─► tail.fc.weight

A file of safetensors refuses the same memory under two names, and a trainer of others
saves what ``state_dict()`` returns.
"""

from itertools import chain
from typing import Any

from torch import nn


def save_once(model: nn.Module) -> None:
    """Let the ``state_dict`` of a model have each tied weight once."""
    model.register_state_dict_post_hook(_drop)  # type: ignore[no-untyped-call]
    model.register_load_state_dict_pre_hook(_add)  # type: ignore[no-untyped-call]


def _drop(model: nn.Module, state: dict[str, Any], prefix: str, _local: Any) -> None:
    for name in _tied(model):
        state.pop(f"{prefix}{name}", None)


def _add(model: nn.Module, state: dict[str, Any], prefix: str, *_rest: Any) -> None:
    for name, first in _tied(model).items():
        if f"{prefix}{first}" in state:
            state.setdefault(f"{prefix}{name}", state[f"{prefix}{first}"])


def _tied(model: nn.Module) -> dict[str, str]:
    """Return the first name of each weight that has another one, by the other one."""
    first: dict[int, str] = {}
    named = chain(
        model.named_parameters(remove_duplicate=False),
        model.named_buffers(remove_duplicate=False),
    )
    found = {name: first.setdefault(id(state), name) for name, state in named}
    return {name: known for name, known in found.items() if name != known}
