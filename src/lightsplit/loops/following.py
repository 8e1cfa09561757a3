"""The server follows the client's optimizer.

Torch reports every step of every optimizer, no matter who made it: a plain loop, a
library's wrapper, or somebody else's trainer. A step of an optimizer that has
parameters of a connected model is that model's update.
"""

import weakref
from collections.abc import Iterator
from typing import Any, Protocol

from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook


class Follower(Protocol):
    """A model whose other half follows its optimizer."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters."""
        ...

    def optimizer_stepped(self, optimizer: Optimizer) -> None:
        """Hear of a step that an optimizer of these parameters has made."""
        ...


_FOLLOWERS: weakref.WeakSet[Any] = weakref.WeakSet()


def follow(model: Follower) -> None:
    """Tell ``model`` of the steps of its optimizers from now on."""
    if not _FOLLOWERS:
        _install()
    _FOLLOWERS.add(model)


def _install() -> None:
    if not getattr(_install, "is_done", False):
        register_optimizer_step_post_hook(_tell)
        _install.is_done = True  # type: ignore[attr-defined]


def _tell(optimizer: Optimizer, _args: Any, _kwargs: Any) -> None:
    stepped = {id(one) for group in optimizer.param_groups for one in group["params"]}
    for model in list(_FOLLOWERS):
        if any(id(parameter) in stepped for parameter in model.parameters()):
            model.optimizer_stepped(optimizer)
