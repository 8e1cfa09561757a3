"""Builds a part: a copy of the model that holds the part's own modules and states.

The copy has the model's own code and names. Modules that run only in the part are the
model's own; others are stand-ins. Parameters and saved buffers of opened modules that
belong to another part are blanks: zeros that are not saved.
"""

import copy
import types
from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from torch import nn

from lightsplit.splitting.modules import ModuleNames
from lightsplit.splitting.plans import Fate, Plan
from lightsplit.splitting.stand_ins import StandIn


class Tree(NamedTuple):
    """The modules of a part, and the states that are blanks in it with their users."""

    root: nn.Module
    blanks: dict[str, frozenset[int]]


def assemble(
    model: nn.Module, plan: Plan, part: int, passed_on: Collection[str] = ()
) -> Tree:
    """Return the modules of one part.

    Args:
        model: the whole.
        plan: of the cut.
        part: to build.
        passed_on: the modules whose results only stand-ins read.
    """
    memo: dict[int, Any] = {
        id(state): state for state in model.state_dict(keep_vars=True).values()
    }
    opened = []
    for path, fate in plan.fates[part].items():
        module = model.get_submodule(path)
        if fate is Fate.KEPT:
            memo[id(module)] = module
        elif fate is Fate.STOOD_IN:
            result, is_passed_on = plan.results.get(path), path in passed_on
            memo[id(module)] = StandIn(module, path, result, is_passed_on=is_passed_on)
        else:
            opened.append(path)
    root: nn.Module = copy.deepcopy(model, memo)
    names = ModuleNames(model)
    blanks = {}
    for name, first in names.first_states.items():
        users = plan.states.get(first, frozenset())
        if name.rpartition(".")[0] in opened and part not in users:
            blanks[name] = users
            _blank(root, name)
    return Tree(root, blanks)


def give_class(root: nn.Module, kind: type[nn.Module]) -> None:
    """Make ``root`` an object of ``kind`` that keeps all methods of its own class."""
    root.__class__ = types.new_class(kind.__name__, (kind, type(root)))


def _blank(root: nn.Module, name: str) -> None:
    path, _, field = name.rpartition(".")
    holder = root.get_submodule(path)
    state = getattr(holder, field)
    delattr(holder, field)
    device = "cpu" if state.is_meta else state.device  # the part runs without it
    zeros = torch.zeros((), dtype=state.dtype, device=device)
    holder.register_buffer(field, zeros.expand(state.shape), persistent=False)
