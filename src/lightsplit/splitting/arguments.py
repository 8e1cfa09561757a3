"""What a model is called with: a batch as arguments, by name, and as blanks.

    {"input_ids": …, "attention_mask": …}  ──►  model(input_ids=…, attention_mask=…)
    any other batch                        ──►  model(batch)

A dictionary whose keys are all parameters of ``forward`` becomes keyword arguments.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from lightsplit.nesting import map_tensors, tensors_in


class Arguments(NamedTuple):
    """Positional and keyword arguments of a forward pass."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def copied(self) -> "Arguments":
        """Return the arguments with copied tensors: no two of them are the same one."""
        return Arguments(*map_tensors(Tensor.clone, tuple(self)))


@dataclass(frozen=True)
class Signature:
    """The names of the parameters of a forward pass."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, model: nn.Module) -> Self:
        """Return the signature of the forward pass of ``model``."""
        parameters = inspect.signature(model.forward).parameters.values()
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return cls(tuple(each.name for each in parameters if each.kind not in kinds))

    def spread(self, *args: Any, **kwargs: Any) -> Arguments:
        """Return the arguments; one dictionary of known names becomes keywords."""
        if len(args) != 1 or kwargs or not isinstance(args[0], Mapping):
            return Arguments(args, kwargs)
        is_named = args[0] and all(key in self.names for key in args[0])
        return Arguments((), dict(args[0])) if is_named else Arguments(args, kwargs)

    def named(self, given: Arguments) -> dict[str, Any]:
        """Return the arguments by the names of their parameters."""
        places = [*self.names, *(f"input {n}" for n in range(len(given.args)))]
        return dict(zip(places, given.args, strict=False)) | given.kwargs

    def leaves(self, given: Arguments) -> list[tuple[str, Tensor]]:
        """Return every tensor among the arguments with its name, in order."""
        return [
            found
            for name, nest in self.named(given).items()
            for found in _leaves(name, nest)
        ]


def call(model: nn.Module, inputs: Any) -> Any:
    """Return the output of ``model`` for a batch of inputs."""
    args, kwargs = Signature.of(model).spread(inputs)
    return model(*args, **kwargs)


def _leaves(name: str, nest: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(nest, Tensor):
        yield name, nest
    elif isinstance(nest, Mapping):
        for key, value in nest.items():
            yield from _leaves(str(key), value)
    elif isinstance(nest, Sequence) and not isinstance(nest, str):
        for place, value in enumerate(nest):
            yield from _leaves(f"{name}[{place}]", value)
    else:
        for place, value in enumerate(tensors_in(nest)):
            yield f"{name}[{place}]", value


def replace_leaves(nest: Any, changes: Mapping[int, Any]) -> Any:
    """Return ``nest`` with the tensors at the given places replaced."""
    place = iter(range(len(list(tensors_in(nest)))))

    def replaced(tensor: Tensor) -> Any:
        return changes.get(next(place), tensor)

    return map_tensors(replaced, nest) if changes else nest


class Blank(NamedTuple):
    """The form of a tensor of the example."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Self:
        """Return the form of ``tensor``."""
        return cls(tuple(tensor.shape), tensor.dtype)

    def zeros(self, like: Tensor, form: "Blank") -> Tensor:
        """Return zeros of this form on the device of ``like``.

        ``form`` is what ``like`` was in the example. A size that was the same in both,
        at the same place, follows ``like``: the batch, and the length of a sequence.
        """
        sizes = [
            like.shape[place]
            if place < min(like.ndim, len(form.shape)) and form.shape[place] == size
            else size
            for place, size in enumerate(self.shape)
        ]
        dtype = like.dtype if self.dtype == form.dtype else self.dtype
        return torch.zeros(sizes, dtype=dtype, device=like.device)


@dataclass(frozen=True)
class Template:
    """The arguments of the example without their numbers."""

    given: Arguments
    names: tuple[str, ...]
    forms: tuple[Blank, ...]

    @classmethod
    def of(cls, signature: Signature, given: Arguments) -> Self:
        """Return the template of an example."""
        found = signature.leaves(given)
        emptied = map_tensors(lambda one: one.new_empty((0,)), given)
        forms = tuple(Blank.of(tensor) for _, tensor in found)
        return cls(Arguments(*emptied), tuple(name for name, _ in found), forms)

    def fill(self, make: Callable[[str, Blank], Tensor]) -> Arguments:
        """Return arguments of this form with the tensors that ``make`` returns."""
        made = {
            place: make(name, form)
            for place, (name, form) in enumerate(
                zip(self.names, self.forms, strict=True)
            )
        }
        args, kwargs = replace_leaves(tuple(self.given), made)
        return Arguments(args, kwargs)
