"""Companions: tensors that cross the front cut with a code, as they are.

    "attention_mask int64 (batch, tokens)"

A companion has no gradient and no codec. The contract names each with its type and its
shape, in which ``batch`` and ``tokens`` stand for numbers that vary from step to step.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from lightsplit.codecs.base import TensorSpec
from lightsplit.errors import ContractError

ROWS = "rows"  # which tokens of a batch were sent: uint8 (batch, tokens)
_FORM = re.compile(r"(\S+) (\w+) \(([^()]*)\)")
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float32,
    )
}


@dataclass(frozen=True)
class Companion:
    """What a contract says about one companion.

    Attributes:
        name: of the model's input.
        dtype: of its numbers on the wire.
        shape: whole numbers, ``batch`` and ``tokens``.

    Example:
        >>> Companion.parse("attention_mask int64 (batch, tokens)").shape
        ('batch', 'tokens')
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int | str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the companion that a term of a contract describes."""
        found = _FORM.fullmatch(text)
        if found is None or found[2] not in _DTYPES:
            raise ContractError(
                "expected a companion such as 'mask int64 (batch, tokens)', got "
                f"{text!r}"
            )
        sizes = [size.strip() for size in found[3].split(",") if size.strip()]
        shape = tuple(int(size) if size.isdecimal() else size for size in sizes)
        return cls(found[1], _DTYPES[found[2]], shape)

    @classmethod
    def like(cls, name: str, tensor: Tensor, sizes: Mapping[str, int]) -> Self:
        """Return the companion of which ``tensor`` is one, in a batch of ``sizes``."""
        dtype = torch.uint8 if tensor.dtype == torch.bool else tensor.dtype
        if dtype not in _DTYPES.values():
            known = ", ".join(_DTYPES)
            raise ContractError(
                f"{name!r} cannot be shared: expected bool, {known}; got {tensor.dtype}"
            )
        names = list(sizes)
        shape: list[int | str] = []
        for place, size in enumerate(tensor.shape):
            varies = place < len(names) and sizes[names[place]] == size
            shape.append(names[place] if varies else size)
        return cls(name, dtype, tuple(shape))

    def spec(self, sizes: Mapping[str, int]) -> TensorSpec:
        """Return what the companion of a batch of ``sizes`` is."""
        shape = tuple(
            size if isinstance(size, int) else sizes.get(size, 0) for size in self.shape
        )
        return TensorSpec(shape, self.dtype)

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.name} {dtype} ({', '.join(map(str, self.shape))})"
