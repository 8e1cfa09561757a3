"""The three parts of a split model, and the way back to one model."""

import copy
from collections import OrderedDict
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import torch
from torch import Tensor, nn

from lightsplit.errors import SplitError
from lightsplit.splitting.running import Part, companions_of
from lightsplit.splitting.sequential import nest, state_of, tied_state
from lightsplit.splitting.stand_ins import StandIn


@dataclass(frozen=True)
class SplitModel:
    """A model in parts.

    The parts share the parameters of ``whole`` under the same names, so training a part
    trains the whole. Set the mode with ``train()`` and ``eval()`` of the parts.

    Attributes:
        head: The client's first part.
        backbone: The server's part.
        tail: The client's last part; None if the backbone runs to the end.
        whole: The model that was split.
    """

    head: nn.Module
    backbone: nn.Module
    tail: nn.Module | None
    whole: nn.Module

    @classmethod
    def by_hand(
        cls, head: nn.Module, backbone: nn.Module, tail: nn.Module | None = None
    ) -> Self:
        """Return the split model that calls these modules one after another.

        Parameters are named ``head.…``, ``backbone.…`` and ``tail.…``.
        """
        given = OrderedDict[str, nn.Module](head=head, backbone=backbone)
        if tail is not None:
            given["tail"] = tail
        for _, names in tied_state([state_of({n: m}) for n, m in given.items()]):
            raise SplitError(
                f"cannot split by hand: two of the modules share {names}, and shared "
                "state cannot be cut; give each part its own"
            )
        whole = nn.Sequential(given)
        whole.training = any(module.training for module in given.values())
        parts = [nest({name: module}) for name, module in given.items()]
        for part, module in zip(parts, given.values(), strict=True):
            part.training = module.training
        return cls(parts[0], parts[1], parts[2] if tail is not None else None, whole)

    def example_of(self, inputs: Any) -> tuple[Tensor, Tensor]:
        """Return activation and output of a batch, for their shapes."""
        activation = self.head(inputs)
        companions = companions_of(self.head, inputs)
        shared = (companions,) if companions else ()
        return activation, self.backbone(activation, *shared)

    @property
    def sent(self) -> tuple[str, ...]:
        """The names of the tensors that cross the front cut, where they are known."""
        return _crossing(self.head, "activation")

    @property
    def sent_back(self) -> tuple[str, ...]:
        """The names of the tensors that cross the back cut, where they are known."""
        return _crossing(self.head, "output")

    @property
    def parts(self) -> tuple[nn.Module, ...]:
        """The existing parts, in order."""
        return tuple(
            part for part in (self.head, self.backbone, self.tail) if part is not None
        )


def _crossing(head: nn.Module, which: str) -> tuple[str, ...]:
    found = getattr(head.recipe.plan, which) if isinstance(head, Part) else None
    return () if found is None else found.names


def merge(parts: SplitModel) -> nn.Module:
    """Return a plain model of the whole's own class with the weights of the parts.

    It has copies of the parts' weights, buffers and modes. A module that two parts
    opened is in training mode if either part is.
    """
    merged = copy.deepcopy(parts.whole)
    tensors = dict(
        chain(
            merged.named_parameters(remove_duplicate=False),
            merged.named_buffers(remove_duplicate=False),
        )
    )
    modes: dict[str, bool] = {}
    for part in parts.parts:
        blanks = part.recipe.blanks if isinstance(part, Part) else {}
        with torch.no_grad():
            for name, tensor in chain(part.named_parameters(), part.named_buffers()):
                if name in tensors and name not in blanks:
                    tensors[name].copy_(tensor)
        for name, module in part.named_modules():
            if not isinstance(module, StandIn):
                modes[name] = modes.get(name, False) or module.training
    for name, module in merged.named_modules(remove_duplicate=False):
        module.training = modes.get(name, module.training)
    return merged
