"""A model whose parts are graphs of operations, for exporters.

A part runs the model's own forward pass, and leaves or enters it in the middle of a
module. Exporters follow modules from start to end, so they get only the operations.
"""

import copy
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx

from lightsplit.nesting import tensors_in
from lightsplit.splitting.arguments import replace_leaves
from lightsplit.splitting.running import Part


def flattened(model: nn.Module, example: Any) -> nn.Module:
    """Return a copy of a model in which every part that is called is a graph.

    Args:
        model: in evaluation mode.
        example: its inputs. Later calls may have another number of samples, if the
            operations allow it.
    """
    made = copy.deepcopy(model)
    parts = {path: one for path, one in made.named_modules() if isinstance(one, Part)}
    called: dict[str, tuple[Any, ...]] = {}

    def note(path: str, _part: nn.Module, given: tuple[Any, ...]) -> None:
        called[path] = given

    with ExitStack() as hooks, torch.no_grad():
        for path, part in parts.items():
            hook = part.register_forward_pre_hook(partial(note, path))
            hooks.enter_context(hook)
        made(example)
    for path, given in called.items():
        made.set_submodule(path, _Flat(parts[path], given))
    return made


class _Flat(nn.Module):
    """One part, called with its weights as if they were inputs."""

    def __init__(self, part: Part, example: tuple[Any, ...]) -> None:
        super().__init__()
        self.part = part

        def call(state: dict[str, Tensor], *tensors: Tensor) -> Any:
            given = replace_leaves(example, dict(enumerate(tensors)))
            return functional_call(part, state, given)

        tensors = tensors_in(example)
        self._graph = make_fx(call, tracing_mode="symbolic")(self._state(), *tensors)

    def forward(self, *given: Any) -> Any:
        """Return what the part returns."""
        return self._graph(self._state(), *tensors_in(given))

    def _state(self) -> dict[str, Tensor]:
        return {**dict(self.part.named_parameters()), **dict(self.part.named_buffers())}
