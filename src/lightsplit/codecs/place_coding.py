"""Which k of d places are kept, in the fewest bits.

    enumerative   the number of the choice among all C(d, k)   ⌈log₂ C(d, k)⌉ bits
    bitmap        one bit for each place                        d bits
    fixed         one number for each kept place                k·⌈log₂ d⌉ bits

A choice is numbered by halves: how many places the left half keeps, then the choice in
the left half, then that in the right one. Pieces of 16 places are looked up in a table.
No other code of a fixed length is shorter, but long halves need large tables, so above
8,192 places the shorter one of the other two is taken.

The choices of a batch follow each other without gaps; zeros fill the last byte.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.errors import CodecError

MOST_ENUMERATED = 8192
_PIECE = 16
_MOST_TABLES = 1024
_MOST_CHOICES = 65_536

Bits = NDArray[np.uint8]


def place_coding(size: int, kept: int) -> str:
    """Return the shortest way to write ``kept`` of ``size`` places.

    Example:
        >>> place_coding(4096, 512), place_coding(9000, 3000), place_coding(9000, 10)
        ('enumerative', 'bitmap', 'fixed')
    """
    if size <= MOST_ENUMERATED:
        return "enumerative"
    return "bitmap" if size <= kept * _place_bits(size) else "fixed"


def choice_bits(size: int, kept: int) -> int:
    """Return the bits of one choice.

    Example:
        >>> choice_bits(4096, 512), choice_bits(9000, 3000), choice_bits(9000, 10)
        (2221, 9000, 140)
    """
    coding = place_coding(size, kept)
    if coding == "enumerative":
        return (math.comb(size, kept) - 1).bit_length()
    return size if coding == "bitmap" else kept * _place_bits(size)


def packed_bytes(samples: int, size: int, kept: int) -> int:
    """Return the bytes of the choices of ``samples`` samples."""
    return math.ceil(samples * choice_bits(size, kept) / 8)


def pack_places(places: Tensor, size: int) -> Tensor:
    """Return sorted places (B, k) as bytes (n,)."""
    kept = places.shape[1]
    coding = place_coding(size, kept)
    if coding == "enumerative":
        return _bytes_of(_packed_numbers(_bitmap(places, size), kept), places)
    if coding == "bitmap":
        return _bytes_of(np.packbits(_bitmap(places, size), bitorder="little"), places)
    numbers = places.cpu().numpy().astype(np.int64).reshape(-1, 1)
    bits = (numbers >> np.arange(_place_bits(size))) & 1
    return _bytes_of(np.packbits(bits.astype(np.uint8), bitorder="little"), places)


def unpack_places(packed: Tensor, samples: int, size: int, kept: int) -> Tensor:
    """Return the places (B, k) that ``pack_places`` was given; refuse other bytes."""
    if packed.shape != (packed_bytes(samples, size, kept),):
        raise CodecError(
            f"expected {packed_bytes(samples, size, kept)} bytes of places, got "
            f"{tuple(packed.shape)}"
        )
    coding = place_coding(size, kept)
    written = np.ascontiguousarray(packed.cpu().numpy())
    if coding == "enumerative":
        places = _places_of(_bits_of_numbers(written, samples, size, kept), kept)
    else:
        used = samples * choice_bits(size, kept)
        bits = np.unpackbits(written, bitorder="little")[:used].reshape(samples, -1)
        places = _places_of(bits, kept) if coding == "bitmap" else _numbers(bits, kept)
    if (np.diff(places, axis=1) <= 0).any() or (places >= size).any():
        raise CodecError(f"expected {kept} rising places below {size} in each sample")
    return torch.from_numpy(places).to(packed.device)


def _place_bits(size: int) -> int:
    return max(1, (size - 1).bit_length())


def _bytes_of(written: Bits, like: Tensor) -> Tensor:
    return torch.from_numpy(written).to(like.device)


def _bitmap(places: Tensor, size: int) -> Bits:
    bits = np.zeros((len(places), size), dtype=np.uint8)
    np.put_along_axis(bits, places.cpu().numpy().astype(np.int64), 1, axis=1)
    return bits


def _places_of(bits: Bits, kept: int) -> NDArray[np.int64]:
    if (bits.sum(axis=1, dtype=np.int64) != kept).any():
        raise CodecError(f"expected {kept} places in each sample")
    return np.nonzero(bits)[1].reshape(len(bits), kept).astype(np.int64)


def _numbers(bits: Bits, kept: int) -> NDArray[np.int64]:
    shaped = bits.reshape(len(bits), kept, -1).astype(np.int64)
    weights = np.left_shift(1, np.arange(shaped.shape[2]))
    return np.asarray(shaped @ weights, dtype=np.int64)


def _packed_numbers(bitmap: Bits, kept: int) -> Bits:
    """Return the number of each choice, one after the other."""
    samples, size = bitmap.shape
    width, joined = choice_bits(size, kept), 0
    for row, pieces in enumerate(_pieces(bitmap)):
        number, _ = _number(iter(pieces.tolist()), size)
        joined |= number << (row * width)
    count = packed_bytes(samples, size, kept)
    return np.frombuffer(joined.to_bytes(count, "little"), dtype=np.uint8).copy()


def _bits_of_numbers(written: Bits, samples: int, size: int, kept: int) -> Bits:
    joined, width = int.from_bytes(written.tobytes(), "little"), choice_bits(size, kept)
    if joined >> (samples * width):
        raise CodecError("expected zeros after the places of the last sample")
    choices, mask = math.comb(size, kept), (1 << width) - 1
    pieces = np.zeros((samples, math.ceil(size / _PIECE)), dtype="<u2")
    for row in range(samples):
        number = (joined >> (row * width)) & mask
        if number >= choices:
            raise CodecError(f"expected one of the choices of {kept} places of {size}")
        pieces[row] = list(_chosen(number, size, kept))
    bits = np.unpackbits(pieces.view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size]


def _pieces(bitmap: Bits) -> NDArray[np.uint16]:
    """Return the places of each sample as whole numbers of 16 bits."""
    missing = -bitmap.shape[1] % _PIECE
    padded = np.pad(bitmap, ((0, 0), (0, missing)))
    return np.packbits(padded, axis=1, bitorder="little").view("<u2")


def _number(pieces: Iterator[int], size: int) -> tuple[int, int]:
    """Return the number of the choice in the next ``size`` places, and how many."""
    if size <= _PIECE:
        ranks, counts, _ = _piece_table()
        piece = next(pieces)
        return ranks[piece], counts[piece]
    left, right = _halves(size)
    first, before = _number(pieces, left)
    second, after = _number(pieces, right)
    start = _starts(size, before + after)[before - max(0, before + after - right)]
    return start + first * _choices(right, after) + second, before + after


def _chosen(number: int, size: int, kept: int) -> Iterator[int]:
    """Return the pieces of the choice with this number."""
    if size <= _PIECE:
        yield _piece_table()[2][kept][number]
        return
    left, right = _halves(size)
    starts = _starts(size, kept)
    place = bisect_right(starts, number) - 1
    before = place + max(0, kept - right)
    after = kept - before
    first, second = divmod(number - starts[place], _choices(right, after))
    yield from _chosen(first, left, before)
    yield from _chosen(second, right, after)


def _halves(size: int) -> tuple[int, int]:
    left = math.ceil(size / (2 * _PIECE)) * _PIECE
    return left, size - left


@lru_cache(maxsize=_MOST_CHOICES)
def _choices(size: int, kept: int) -> int:
    return math.comb(size, kept)


@lru_cache(maxsize=_MOST_TABLES)
def _starts(size: int, kept: int) -> list[int]:
    """Return the first number of the choices with each possible count at the left."""
    left, right = _halves(size)
    least, most = max(0, kept - right), min(kept, left)
    counts = [
        _choices(left, before) * _choices(right, kept - before)
        for before in range(least, most)
    ]
    return [0, *accumulate(counts)]


@lru_cache(maxsize=1)
def _piece_table() -> tuple[list[int], list[int], list[list[int]]]:
    """Return rank and count of each piece, and the pieces of each count in order."""
    ranks: list[int] = []
    by_count: list[list[int]] = [[] for _ in range(_PIECE + 1)]
    counts = [piece.bit_count() for piece in range(1 << _PIECE)]
    for piece, count in enumerate(counts):
        ranks.append(len(by_count[count]))
        by_count[count].append(piece)
    return ranks, counts, by_count
