"""The columns of a batch within a budget of bytes, as SplitFC writes them.

    header   B, the grids of ends and of means, levels of the means        24 bytes
    kept     which of the d columns were not dropped                       d bits
    wide     which of those have levels of their own                       1 bit each
    widest   levels, smallest and largest number of each                   24 bits each
             its B numbers on that many levels between the two             B·log₂ Q_i
    rest     the mean of each on a grid of Q_0 levels                      log₂ Q_0 each

How many columns are wide is what makes the bound on the error least. Zeros fill the
budget. The least that a batch takes is 24 bytes and 3 bits for each column.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lightsplit.codecs.digits import digit_bits, pack_digits, unpack_digits
from lightsplit.codecs.splitfc_levels import FEWEST, Levels, error_bound, share_out
from lightsplit.errors import CodecError

Bits = NDArray[np.uint8]
Array = NDArray[np.float64]

_HEADER = struct.Struct("<I4fI")
_END_LEVELS = 256
_WIDE_BITS = 24  # a byte for the levels and one for each end
_CANDIDATES = 6
_TRIES = 4


def least_bytes(columns: int) -> int:
    """Return the bytes of a batch of which only means on two levels are sent."""
    return _HEADER.size + -(-3 * columns // 8)


class Grid(NamedTuple):
    """Evenly spaced numbers from low to high; many grids if these are arrays."""

    low: Array
    high: Array
    levels: int

    @classmethod
    def between(cls, ends: Sequence[float] | Array, levels: int) -> Self:
        """Return the grids from the first to the second row of ``ends``."""
        low, high = np.asarray(ends, dtype=np.float64)
        return cls(low, high, levels)

    def nearest(self, numbers: Array) -> NDArray[np.int64]:
        """Return the places of the nearest numbers of the grid."""
        span = self.high - self.low
        steps = (self.levels - 1) / np.where(span > 0, span, np.inf)
        places = np.rint((numbers - self.low) * steps)
        return np.clip(places, 0, self.levels - 1).astype(np.int64)

    def numbers(self, places: NDArray[np.int64]) -> Array:
        """Return the numbers at these places."""
        step = (self.high - self.low) / (self.levels - 1)
        return np.asarray(self.low + places * step, dtype=np.float64)


class Columns(NamedTuple):
    """A batch of columns: numbers (B, d), zero where a column was dropped."""

    rows: Array
    is_kept: NDArray[np.bool_]


def write_columns(columns: Columns, budget: int) -> Bits:
    """Return the columns in ``budget`` bytes, at least ``least_bytes``."""
    kept = columns.rows[:, columns.is_kept]
    counts = _counts(kept.shape[1])
    plans = [_planned(kept, count, columns, budget) for count in counts]
    best = min(filter(None, plans), key=lambda plan: plan.error)
    bits = np.zeros(8 * budget, dtype=np.uint8)
    written = _written(kept, columns.is_kept, best)
    bits[: len(written)] = written
    return np.packbits(bits, bitorder="little")


def read_kept(written: Bits, columns: int) -> NDArray[np.bool_]:
    """Return which columns were not dropped."""
    bits = np.unpackbits(written[_HEADER.size :], bitorder="little")
    return bits[:columns].astype(np.bool_)


def read_batch(written: Bits) -> int:
    """Return how many samples the columns have."""
    if len(written) < _HEADER.size:
        raise CodecError("splitfc expects bytes that begin with a header")
    batch: int = _HEADER.unpack(written[: _HEADER.size].tobytes())[0]
    return batch


def read_columns(written: Bits, columns: int) -> Array:
    """Return the numbers (B, d) that were written; refuse other bytes."""
    batch, *grids, mean_levels = _HEADER.unpack(written[: _HEADER.size].tobytes())
    if not (np.isfinite(grids).all() and 2 <= mean_levels <= _END_LEVELS and batch):
        raise CodecError(
            "splitfc expects a header of finite numbers and 2 to 256 levels"
        )
    bits = _Reader(np.unpackbits(written[_HEADER.size :], bitorder="little"))
    is_kept = bits.take(columns).astype(np.bool_)
    is_wide = bits.take(int(is_kept.sum())).astype(np.bool_)
    wide = int(is_wide.sum())
    sizes = np.packbits(bits.take(_WIDE_BITS * wide), bitorder="little").astype(
        np.int64
    )
    levels, ends = np.maximum(sizes[:wide] + 1, FEWEST), sizes[wide:]
    bounds = Grid.between(grids[:2], _END_LEVELS).numbers(ends).reshape(2, wide)
    kept = np.zeros((batch, len(is_wide)))
    places = np.flatnonzero(is_wide)
    for base in map(int, np.unique(levels)):
        own = np.flatnonzero(levels == base)
        digits = bits.digits(len(own), batch, base)
        kept[:, places[own]] = Grid.between(bounds[:, own], base).numbers(digits.T)
    means = bits.digits(1, len(is_wide) - wide, mean_levels)
    kept[:, ~is_wide] = Grid.between(grids[2:], mean_levels).numbers(means)
    rows = np.zeros((batch, columns))
    rows[:, is_kept] = kept
    return rows


class _Plan(NamedTuple):
    is_wide: NDArray[np.bool_]
    ends: Grid
    bounds: NDArray[np.int64]  # (2, M) places of smallest and largest number
    levels: Levels
    means: Array
    error: float


class _Reader:
    def __init__(self, bits: Bits) -> None:
        self.bits = bits
        self.place = 0

    def take(self, count: int) -> Bits:
        """Return the next bits; refuse to read beyond the end."""
        if self.place + count > len(self.bits):
            raise CodecError("splitfc expects as many bits as its header tells")
        self.place += count
        return self.bits[self.place - count : self.place]

    def digits(self, rows: int, count: int, base: int) -> NDArray[np.int64]:
        """Return the next digits (rows, count)."""
        bits = self.take(rows * digit_bits(count, base))
        return unpack_digits(bits, rows, count, base)


def _counts(kept: int) -> list[int]:
    """Return numbers of wide columns to try: none, all, and powers of two between."""
    shares = [kept >> shift for shift in range(_CANDIDATES)]
    return sorted({0, *shares})


def _planned(kept: Array, count: int, columns: Columns, budget: int) -> _Plan | None:
    """Return how to write the columns with ``count`` wide ones."""
    low, high = (
        (kept.min(axis=0), kept.max(axis=0)) if kept.size else (kept[0], kept[0])
    )
    is_wide = np.zeros(kept.shape[1], dtype=np.bool_)
    is_wide[np.argsort(low - high, kind="stable")[:count]] = True
    outer = np.concatenate([low[is_wide], high[is_wide]])
    ends = Grid.between(_ends(outer), _END_LEVELS)
    bounds = ends.nearest(np.stack([low[is_wide], high[is_wide]]))
    ranges = np.ptp(ends.numbers(bounds), axis=0) if count else np.zeros(0)
    means = kept[:, ~is_wide].mean(axis=0)
    fixed = 8 * _HEADER.size + len(columns.is_kept) + len(is_wide) + _WIDE_BITS * count
    levels = _fitting(ranges, means, len(kept), 8 * budget - fixed)
    if levels is None:
        return None
    error = error_bound(ranges, means, (high - low)[~is_wide], levels, len(kept))
    return _Plan(is_wide, ends, bounds, levels, means, error)


def _fitting(ranges: Array, means: Array, batch: int, at_hand: int) -> Levels | None:
    """Return the best levels within the bits at hand; None if there are none."""
    fewest = Levels(np.full(len(ranges), FEWEST), FEWEST)
    if _bits(fewest, len(means), batch) > at_hand:
        return None
    share = float(at_hand)
    for _ in range(_TRIES):
        levels = share_out(ranges, means, batch, share)
        excess = _bits(levels, len(means), batch) - at_hand
        if excess <= 0:
            return levels
        share -= excess + batch  # words of whole bits cost a little more than log₂ Q
    return fewest


def _ends(numbers: Array) -> tuple[float, float]:
    """Return smallest and largest number as float32, which the header holds."""
    if not len(numbers):
        return 0.0, 0.0
    return float(np.float32(numbers.min())), float(np.float32(numbers.max()))


def _bits(levels: Levels, means: int, batch: int) -> int:
    bases, counts = np.unique(levels.own, return_counts=True)
    sizes = [digit_bits(batch, base) for base in map(int, bases)]
    return int(counts @ np.array(sizes, dtype=np.int64)) + digit_bits(
        means, levels.means
    )


def _written(kept: Array, is_kept: NDArray[np.bool_], plan: _Plan) -> Bits:
    outer = _ends(plan.means)
    grid = Grid.between(outer, plan.levels.means)
    ends = float(plan.ends.low), float(plan.ends.high)
    header = _HEADER.pack(len(kept), *ends, *outer, grid.levels)
    sizes = np.concatenate([plan.levels.own - 1, plan.bounds.ravel()]).astype(np.uint8)
    return np.concatenate(
        [
            np.unpackbits(np.frombuffer(header, dtype=np.uint8), bitorder="little"),
            is_kept.astype(np.uint8),
            plan.is_wide.astype(np.uint8),
            np.unpackbits(sizes, bitorder="little"),
            *_own_digits(kept[:, plan.is_wide], plan),
            pack_digits(grid.nearest(plan.means)[None], grid.levels),
        ]
    )


def _own_digits(wide: Array, plan: _Plan) -> Iterator[Bits]:
    """Return the wide columns, those of fewer levels first."""
    bounds = plan.ends.numbers(plan.bounds)
    for base in map(int, np.unique(plan.levels.own)):
        own = np.flatnonzero(plan.levels.own == base)
        grid = Grid.between(bounds[:, own], base)
        yield pack_digits(grid.nearest(wide[:, own]).T, base)
