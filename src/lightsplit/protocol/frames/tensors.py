"""Tensors as the bytes of a ``Tensor`` field, and back.

    tensor ── its own memory, not copied ──► head, data ──► [network]
    [network] ── dtype and shape ──► TensorSpec ── checked ──► new tensor ◄── data, copied

A received tensor lies in memory that torch allocated. It is aligned as in one process,
so kernels take the same path and give the same bits. Little-endian machines only.
"""  # noqa: E501

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.codecs.base import TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.finite import all_finite
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames.fields import field_head, parsed, split

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
_DATA = pb.Tensor.DATA_FIELD_NUMBER
_MOST_HEAD_BYTES = 128  # dtype, format and shape take 46 at most


@lru_cache(maxsize=1024)  # most messages of a run have tensors of a few shapes
def tensor_head(number: int, dtype: torch.dtype, shape: torch.Size) -> bytes:
    """Return everything in the field ``number`` that precedes a tensor's data."""
    spec = _checked(dtype, tuple(shape))
    inner = pb.Tensor(dtype=_NUMBERS[spec.dtype], shape=spec.shape).SerializeToString()
    inner += field_head(_DATA, spec.bytes)
    return field_head(number, len(inner) + spec.bytes) + inner


def data_of(tensor: Tensor) -> memoryview:
    """Return the numbers of a tensor row by row: its own memory if possible."""
    return _bytes_of(_array_of(tensor.detach().cpu().contiguous()))


def read_tensor(body: memoryview) -> tuple[TensorSpec, memoryview]:
    """Return the dtype and shape that a tensor claims, and its data.

    Args:
        body: the content of the tensor's field.
    """
    small, big = split(body, frozenset({_DATA}))
    if len(big) != 1 or len(small) > _MOST_HEAD_BYTES:
        raise ProtocolError(
            f"expected a tensor with one field of data and at most {_MOST_HEAD_BYTES} "
            f"other bytes, got {len(big)} and {len(small)}",
            code="malformed",
        )
    ((_, data),) = big
    return _spec(small), data


def make_tensor(spec: TensorSpec, data: memoryview, name: str) -> Tensor:
    """Return a received tensor; refuse wrong lengths and numbers that are not finite.

    Args:
        spec: the dtype and shape that it claims.
        data: its numbers.
        name: what errors call it.
    """
    if len(data) != spec.bytes:
        raise ProtocolError(
            f"{name}: {spec.dtype} of shape {spec.shape} takes {spec.bytes} bytes, got "
            f"{len(data)}",
            code="malformed",
        )
    tensor = torch.empty(spec.shape, dtype=spec.dtype)
    _bytes_of(_array_of(tensor))[:] = data
    if not all_finite(tensor):
        raise ProtocolError(f"{name}: a number is not finite", code="not-finite")
    return tensor


def _array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the same memory as an array; bfloat16, which NumPy lacks, as integers."""
    known = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return known.numpy()


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    return memoryview(array).cast("B")  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _spec(head: bytes) -> TensorSpec:
    """Return what the small fields of a tensor say, if it is legal."""
    claimed = parsed(pb.Tensor, head, "tensor")
    if claimed.format != pb.FORMAT_PLAIN or claimed.dtype not in _DTYPES:
        raise ProtocolError(
            f"unknown tensor format {claimed.format} or dtype {claimed.dtype}",
            code="malformed",
        )
    return _checked(_DTYPES[claimed.dtype], tuple(claimed.shape))


def _checked(dtype: torch.dtype, shape: tuple[int, ...]) -> TensorSpec:
    if dtype not in _NUMBERS:
        known = ", ".join(str(one).removeprefix("torch.") for one in DTYPES)
        raise ProtocolError(
            f"{dtype} cannot be sent; use one of {known}", code="wrong-shape"
        )
    if len(shape) > MOST_DIMENSIONS or not all(0 < n < 2**32 for n in shape):
        raise ProtocolError(
            f"expected 0 to {MOST_DIMENSIONS} positive dimensions, got {shape}",
            code="wrong-shape",
        )
    return TensorSpec(shape, dtype)
