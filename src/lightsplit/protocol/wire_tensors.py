"""Tensors as the bytes of a ``Tensor`` field, and back.

    tensor ── its own memory, not copied ──► head, data ──► [wire]
    [wire] ── dtype and shape ──► TensorSpec ── checked ──► new tensor ◄── data, copied

A received tensor lies in memory that torch allocated: aligned as in one process, so
that kernels take the same path and give the same bits. Little-endian machines only.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.codecs.base import TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.wire_fields import parsed, split, tag, varint

MOST_DIMENSIONS = 8

_NUMBERS = {
    torch.float32: pb.DTYPE_FLOAT32,
    torch.float64: pb.DTYPE_FLOAT64,
    torch.float16: pb.DTYPE_FLOAT16,
    torch.bfloat16: pb.DTYPE_BFLOAT16,
    torch.int8: pb.DTYPE_INT8,
    torch.uint8: pb.DTYPE_UINT8,
    torch.int16: pb.DTYPE_INT16,
    torch.int32: pb.DTYPE_INT32,
    torch.int64: pb.DTYPE_INT64,
}
_DTYPES = {int(number): dtype for dtype, number in _NUMBERS.items()}
DTYPES = tuple(_NUMBERS)
_WIDE = {torch.float32, torch.float64}  # NumPy is quick with these
_DATA = frozenset({pb.Tensor.DATA_FIELD_NUMBER})
_HEAD_LIMIT = 128  # bytes; dtype, format and shape take 46 at most


@lru_cache(maxsize=4096)
def tensor_head(
    field: int, dtype: torch.dtype, shape: tuple[int, ...]
) -> tuple[bytes, int]:
    """Return all that precedes a tensor's data in ``field``, and the data's length."""
    spec = _checked(dtype, tuple(shape))
    inner = pb.Tensor(dtype=_NUMBERS[dtype], shape=spec.shape).SerializeToString()
    inner += tag(pb.Tensor.DATA_FIELD_NUMBER) + varint(spec.bytes)
    return tag(field) + varint(len(inner) + spec.bytes) + inner, spec.bytes


def data_of(tensor: Tensor) -> memoryview:
    """Return the numbers of ``tensor``, row by row; its own memory where it can be."""
    try:
        return _memory_of(tensor)
    except (TypeError, RuntimeError):  # elsewhere, in pieces, or part of a graph
        return _memory_of(tensor.detach().cpu().contiguous())


def received(body: memoryview) -> tuple[TensorSpec, memoryview]:
    """Return what a received tensor claims to be, and its data where they lie."""
    small, big = split(body, _DATA)
    if len(big) != 1 or len(small) > _HEAD_LIMIT:
        raise ProtocolError("a tensor without head or data", code="malformed")
    return _spec(small), big[0][1]


def tensor_of(spec: TensorSpec, data: memoryview, kind: str, name: str) -> Tensor:
    """Return a received tensor, or refuse wrong lengths and non-finite numbers.

    Args:
        spec: what it claims to be.
        data: its numbers.
        kind: of its message.
        name: of its field.
    """
    if len(data) != spec.bytes:
        raise ProtocolError(
            f"{kind}.{name}: {spec.dtype} of shape {spec.shape} takes {spec.bytes} "
            f"bytes, got {len(data)}",
            code="malformed",
        )
    tensor = torch.empty(spec.shape, dtype=spec.dtype)
    numbers = _numbers_of(tensor)
    memoryview(numbers).cast("B")[:] = data  # type: ignore[arg-type]
    if not _is_finite(tensor, numbers):
        raise ProtocolError(f"{kind}.{name}: a number is not finite", code="not-finite")
    return tensor


def _memory_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor that lies in one piece."""
    return memoryview(_numbers_of(tensor)).cast("B")  # type: ignore[arg-type]


def _numbers_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor as an array, bfloat16 as integers: NumPy does not know it."""
    known = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return known.numpy()


def _is_finite(tensor: Tensor, numbers: np.ndarray[Any, Any]) -> bool:
    """Say whether all numbers of a tensor are finite, given the same as an array."""
    if not tensor.is_floating_point():
        return True
    # No infinity or NaN can hide in a sum of squares, or in a sum, and either is thirty
    # times as fast as a look at each number; but finite numbers may overflow together,
    # so a bad sum only leads to the slow way.
    is_wide = tensor.dtype in _WIDE
    total = np.vdot(numbers, numbers) if is_wide else tensor.sum().item()
    return math.isfinite(total) or bool(tensor.isfinite().all())


@lru_cache(maxsize=4096)
def _spec(head: bytes) -> TensorSpec:
    claimed = parsed(pb.Tensor, head, "tensor")
    if claimed.format != pb.FORMAT_PLAIN or claimed.dtype not in _DTYPES:
        raise ProtocolError(
            f"unknown tensor format {claimed.format} or dtype {claimed.dtype}",
            code="malformed",
        )
    return _checked(_DTYPES[claimed.dtype], tuple(claimed.shape))


def _checked(dtype: torch.dtype, shape: tuple[int, ...]) -> TensorSpec:
    if dtype not in _NUMBERS:
        raise ProtocolError(f"{dtype} cannot be sent", code="wrong-shape")
    if len(shape) > MOST_DIMENSIONS or not all(0 < n < 2**32 for n in shape):
        raise ProtocolError(
            f"expected 0 to {MOST_DIMENSIONS} positive dimensions, got {shape}",
            code="wrong-shape",
        )
    return TensorSpec(shape, dtype)
