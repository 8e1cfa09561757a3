"""Batches of any nesting: a tensor, or tuples, lists, dictionaries and dataclasses.

    {"input_ids": (B, T), "attention_mask": (B, T)}  ──map_tensors(f)──►  the same of f

Everything that is not a tensor stays unchanged.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from lightsplit.errors import DataError


def map_tensors(function: Callable[[Tensor], Any], nest: Any) -> Any:
    """Return ``nest`` with ``function`` applied to every tensor in it."""
    if isinstance(nest, Tensor):
        return function(nest)
    if isinstance(nest, Mapping):
        mapped = {key: map_tensors(function, value) for key, value in nest.items()}
        return mapped if type(nest) is dict else type(nest)(mapped)  # type: ignore[call-arg]
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):  # a named tuple
        return type(nest)(*(map_tensors(function, value) for value in nest))
    if isinstance(nest, tuple | list):
        return type(nest)(map_tensors(function, value) for value in nest)
    if dataclasses.is_dataclass(nest) and not isinstance(nest, type):
        fields = {
            field.name: map_tensors(function, getattr(nest, field.name))
            for field in dataclasses.fields(nest)
            if field.init
        }
        return dataclasses.replace(nest, **fields)
    return nest


def tensors_in(nest: Any) -> Iterator[Tensor]:
    """Yield every tensor of ``nest``, in order."""
    found: list[Tensor] = []
    map_tensors(found.append, nest)
    yield from found


def to_device(nest: Any, device: torch.device | None) -> Any:
    """Return ``nest`` with every tensor on ``device``; None leaves them in place."""
    return nest if device is None else map_tensors(lambda one: one.to(device), nest)


def batch_size(nest: Any) -> int:
    """Return how many samples a batch holds: the rows of its first tensor.

    Example:
        >>> batch_size({"x": torch.zeros(4, 2), "length": torch.zeros(4)})
        4
    """
    for tensor in tensors_in(nest):
        if tensor.ndim == 0:
            raise DataError("every tensor of a batch needs a row for each sample")
        return len(tensor)
    raise DataError(f"expected a batch of tensors, got {type(nest).__name__}")


def part_of(nest: Any, rows: slice) -> Any:
    """Return some samples of a batch."""
    return map_tensors(lambda one: one[rows], nest)


def batches_of(nest: Any, size: int) -> Iterator[Any]:
    """Yield a batch in parts of ``size`` samples; the last may have fewer."""
    for start in range(0, batch_size(nest), size):
        yield part_of(nest, slice(start, start + size))


def repeated(nest: Any, rows: int) -> Any:
    """Return a batch with its samples repeated to ``rows`` rows."""

    def repeat(tensor: Tensor) -> Tensor:
        times = -(-rows // len(tensor))
        return torch.cat([tensor] * times)[:rows]

    return map_tensors(repeat, nest)
