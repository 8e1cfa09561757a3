"""Small whole numbers as bits, one after the other, without gaps.

    whole (B, k) of w bits ──► sample 0: k·w bits · sample 1: k·w bits · … ──► bytes

Numbers and bits begin with the lowest. Where k·w is a multiple of 8, the number of
bytes tells the number of samples. Otherwise a single 1 follows the last sample, and
zeros fill the byte: the receiver finds the last 1 and knows where the samples end. So a
batch takes k·w bits per sample and at most one byte more.
"""

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import CodecError


def packed_bytes(samples: int, sample_bits: int) -> int:
    """Return the bytes of ``samples`` samples of ``sample_bits`` bits each.

    Example:
        >>> packed_bytes(64, 16), packed_bytes(3, 12), packed_bytes(8, 1)
        (128, 5, 2)
    """
    whole, rest = divmod(samples * sample_bits, 8)
    return whole + (1 if rest or sample_bits % 8 else 0)


def pack(whole: Tensor, width: int) -> Tensor:
    """Return whole numbers (B, k) from 0 to 2**width − 1 as bytes (n,).

    Example:
        >>> pack(torch.tensor([[1, 0, 1]]), width=1)  # 101, the end mark 1
        tensor([13], dtype=torch.uint8)
    """
    places = torch.arange(width, device=whole.device)
    bits = (whole.unsqueeze(-1) >> places) & 1  # (B, k, width)
    flat = bits.flatten().to("cpu", torch.uint8).numpy()
    if whole.shape[1] * width % 8:
        flat = np.append(flat, np.uint8(1))
    return torch.from_numpy(np.packbits(flat, bitorder="little")).to(whole.device)


def unpack(packed: Tensor, count: int, width: int) -> Tensor:
    """Return the whole numbers (B, count) that ``pack`` was given.

    Args:
        packed: bytes (n,).
        count: numbers per sample.
        width: bits of one number.
    """
    bits = _sample_bits(packed, count * width)
    shaped = torch.from_numpy(bits).view(-1, count, width).long()
    whole = (shaped << torch.arange(width)).sum(dim=-1)
    return whole.to(packed.device)


def packed_samples(packed: Tensor, sample_bits: int) -> int:
    """Return how many samples the bytes hold; refuse bytes that hold no whole one."""
    return len(_sample_bits(packed, sample_bits)) // sample_bits


def _sample_bits(
    packed: Tensor, sample_bits: int
) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    if packed.ndim != 1 or packed.dtype != torch.uint8:
        raise CodecError(
            f"expected packed bits, one row of uint8, got {packed.dtype} "
            f"{tuple(packed.shape)}"
        )
    bits = np.unpackbits(packed.cpu().numpy(), bitorder="little")
    if sample_bits % 8:
        bits = bits[: _end_mark(bits)]
    if not len(bits) or len(bits) % sample_bits:
        raise CodecError(
            f"expected packed samples of {sample_bits} bits each, got {len(bits)} bits"
        )
    return bits


def _end_mark(bits: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> int:
    """Return the place of the last 1, which must lie in the last byte."""
    marks = np.flatnonzero(bits[-8:])
    if not len(marks):
        raise CodecError("expected packed bits with an end mark in their last byte")
    return len(bits) - min(8, len(bits)) + int(marks[-1])
