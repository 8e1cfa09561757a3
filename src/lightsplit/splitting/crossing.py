"""The tensors that cross a cut, joined to one in front of the codec.

    one tensor                     travels as it is
    (B, T, D) and (B, T, E) …      ◄──►  (B, T, D + E)      a row for each token
    anything else                  ◄──►  (B, values)        a row for each sample

A codec, its sizes and its certificate are those of one activation, so several tensors
become one before it and are taken apart after the lift.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lightsplit.errors import SplitError
from lightsplit.nesting import tensors_in
from lightsplit.splitting.arguments import Blank, replace_leaves


@dataclass(frozen=True)
class Crossing:
    """What crosses a cut.

    Attributes:
        path: of the module at the cut.
        names: of the tensors, for messages.
        places: of each tensor among those that the module returns or takes.
        forms: of the tensors in the example.
        is_read_on: for each tensor, whether the client's code keeps using it.
    """

    path: str
    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    forms: tuple[Blank, ...]
    is_read_on: tuple[bool, ...]

    @property
    def is_joined(self) -> bool:
        """Whether several tensors travel as one."""
        return len(self.forms) > 1

    @property
    def form(self) -> Blank:
        """The form of the one tensor that travels, in the example."""
        first = self.forms[0]
        if not self.is_joined:
            return first
        rows = first.shape[: self._leading]
        return Blank((*rows, sum(self._sizes)), first.dtype)

    def tensors(self, nest: Any) -> list[Tensor]:
        """Return the tensors that cross, out of what the module returns or takes."""
        found = list(tensors_in(nest))
        return [found[places[0]] for places in self.places]

    def replaced(self, nest: Any, tensors: Sequence[Tensor]) -> Any:
        """Return the module's result or arguments with other tensors there."""
        changes = {
            place: tensor
            for places, tensor in zip(self.places, tensors, strict=True)
            for place in places
        }
        return replace_leaves(nest, changes)

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the one tensor that travels."""
        if not self.is_joined:
            return tensors[0]
        flat = [
            one.reshape(*one.shape[: self._leading], size)
            for one, size in zip(tensors, self._checked(tensors), strict=True)
        ]
        return torch.cat(flat, dim=-1)

    def apart(self, joined: Tensor) -> list[Tensor]:
        """Return the tensors that ``join`` was given, each in memory of its own."""
        if not self.is_joined:
            return [joined]
        made, rows, start = [], joined.shape[: self._leading], 0
        for form, size in zip(self.forms, self._sizes, strict=True):
            piece = joined[..., start : start + size]
            shape = (*rows, *form.shape[self._leading :])
            made.append(piece.reshape(shape).clone())
            start += size
        return made

    @property
    def _leading(self) -> int:
        """How many dimensions count the rows: two with a row for each token."""
        shapes = [form.shape for form in self.forms]
        counts = {len(shape) for shape in shapes}
        has_tokens = 3 in counts and counts <= {2, 3}
        return 2 if has_tokens and len({shape[:2] for shape in shapes}) == 1 else 1

    @property
    def _sizes(self) -> list[int]:
        """The number of values of each tensor in a row."""
        return [math.prod(form.shape[self._leading :]) for form in self.forms]

    def _checked(self, tensors: Sequence[Tensor]) -> list[int]:
        """Return the sizes; refuse tensors that have another form than the example."""
        rows = tuple(tensors[0].shape[: self._leading])
        for name, one, form in zip(self.names, tensors, self.forms, strict=True):
            expected = (*rows, *form.shape[self._leading :])
            if tuple(one.shape) != expected:
                raise SplitError(
                    f"expected {name} to be {expected}, got {tuple(one.shape)}: "
                    f"{len(self.names)} tensors cross at {self.path!r} as one, and "
                    "keep the shapes that they have in the example"
                )
        return self._sizes


def unjoinable(names: Sequence[str], forms: Sequence[Blank]) -> str:
    """Return why tensors cannot be joined; empty if they can."""
    rows = max((form.shape[0] for form in forms if form.shape), default=0)
    for name, form in zip(names, forms, strict=True):
        if not form.dtype.is_floating_point:
            return f"{name} has no gradient ({form.dtype})"
        if form.dtype != forms[0].dtype:
            return f"{name} is {form.dtype}, and {names[0]} is {forms[0].dtype}"
        if not form.shape or form.shape[0] != rows:
            return f"{name} is {form.shape} and has no row for each sample"
    return ""
