"""The zoo: models that know the names of their cuts.

    @zoo_model("tinycnn", cuts=("l1", "l2"), default="l2")
    def tinycnn(*, cut: str, classes: int = 10) -> ZooModel: …

A cut name stands for a pair of dotted paths. In the paper the deeper head (``l2``) has
a block that the shallower model does not have at all, so a zoo model is built for a
cut. Each model defines its own cuts; ``CUTS`` lists them by model name before anything
is built.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from lightsplit.errors import UnknownNameError
from lightsplit.registry import Registry, unknown_name
from lightsplit.splitting import SplitModel, split


@dataclass(frozen=True)
class ZooModel:
    """A whole model, the inputs it takes and the place where it is cut."""

    module: nn.Module
    input_shape: tuple[int, ...]
    head_until: str
    tail_from: str

    def split(self) -> SplitModel:
        """Cut the model; the parts share its parameters."""
        return split(
            self.module,
            head_until=self.head_until,
            tail_from=self.tail_from,
            example=torch.zeros(2, *self.input_shape),
        )


class Cuts(NamedTuple):
    """The cuts of a model, from shallow to deep, and the default cut."""

    names: tuple[str, ...]
    default: str

    def resolve(self, cut: str | None) -> str:
        """Return ``cut``, or the default if it is None; refuse an unknown name."""
        if cut is None:
            return self.default
        if cut not in self.names:
            raise UnknownNameError(unknown_name("cut", cut, list(self.names)))
        return cut


Build = Callable[..., ZooModel]

MODELS: Registry[ZooModel] = Registry("model", "lightsplit.models")
CUTS: dict[str, Cuts] = {}


def zoo_model(
    name: str, *, cuts: tuple[str, ...], default: str
) -> Callable[[Build], Build]:
    """Return a decorator that registers a model and checks the cut it is built for."""

    def enter(build: Build) -> Build:
        @functools.wraps(build)
        def checked(*, cut: str | None = None, **options: Any) -> ZooModel:
            return build(cut=CUTS[name].resolve(cut), **options)

        registered = MODELS.register(name)(checked)
        CUTS[name] = Cuts(cuts, default)
        return registered

    return enter
