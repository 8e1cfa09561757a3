"""SplitFC's quantisers: how many levels each column of a batch gets.

    least   Σ_i B·a_i²/4(Q_i − 1)²      for   Σ_i B·log₂ Q_i  ≤  the bits at hand

a_i is the range of column i. At the best choice every Q_i solves (Q − 1)³ = u_i·Q with
u_i = a_i²·ln 2/2ν for one ν, found by bisection. The M columns of the widest range have
levels of their own; of each other column only the mean is sent, on one grid of Q_0
levels, with u_0 = B·a_0²·ln 2/ν for the range a_0 of the means.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST, MOST = 2, 256
_BISECTIONS = 24
_DECADES = 14
_NARROW = 1e-30  # a range that needs no more than two levels
_ONE_ROOT = 6.75  # below it, x³ = u·x + u has one real solution, above it three


class Levels(NamedTuple):
    """Levels of the widest columns, in their order, and of the means of the rest."""

    own: NDArray[np.int64]
    means: int


def solve_levels(u: Array) -> Array:
    """Return Q > 1 with (Q − 1)³ = u·Q, for each u of 0 or more.

    Example:
        >>> solve_levels(np.array([0.5, 4.0])).round(6)  # 1³ = ½·2
        array([2.      , 3.382976])
    """
    few, many = np.minimum(u, _ONE_ROOT), np.maximum(u, _ONE_ROOT)
    inner = np.sqrt(np.maximum(few**2 / 4 - few**3 / 27, 0))
    small = np.cbrt(few / 2 + inner) + np.cbrt(few / 2 - inner)
    angle = np.arccos(np.minimum(1.5 * np.sqrt(3 / many), 1)) / 3
    large = 2 * np.sqrt(many / 3) * np.cos(angle)
    return 1 + np.where(u < _ONE_ROOT, small, large)


def share_out(ranges: Array, means: Array, batch: int, bits: float) -> Levels:
    """Return whole levels that cost at most ``bits`` bits, or the fewest there are.

    Args:
        ranges: a_i of the columns with levels of their own.
        means: of the other columns.
        batch: B.
        bits: at hand.
    """
    span = float(np.ptp(means)) if len(means) else 0.0
    widest = max(float(ranges.max(initial=0)), span, _NARROW)
    high = math.log10(2 * batch * widest**2)  # log₁₀ ν; so large a ν gives two levels
    low = high - _DECADES
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        levels = _levels_at(10.0**middle, ranges, span, batch)
        if _cost(levels, len(means), batch) <= bits:
            high = middle
        else:
            low = middle
    return _levels_at(10.0**high, ranges, span, batch)


def error_bound(
    ranges: Array, means: Array, rest: Array, levels: Levels, batch: int
) -> float:
    """Return the bound on the squared error of all columns.

    Args:
        ranges: of the columns with levels of their own.
        means: of the other columns.
        rest: ranges of the other columns.
        levels: of all.
        batch: B.
    """
    own = float(np.sum(ranges**2 / (levels.own - 1.0) ** 2))
    span = float(np.ptp(means)) if len(means) else 0.0
    grid = len(means) * span**2 / (levels.means - 1) ** 2
    return batch / 4 * (own + grid + float(np.sum(rest**2)))


def _levels_at(nu: float, ranges: Array, span: float, batch: int) -> Levels:
    squares = np.append(ranges**2 / 2, span**2 * batch)
    real = solve_levels(squares * (math.log(2) / nu))
    whole = np.clip(np.floor(real), FEWEST, MOST).astype(np.int64)
    return Levels(whole[:-1], int(whole[-1]))


def _cost(levels: Levels, means: int, batch: int) -> float:
    return batch * float(np.log2(levels.own).sum()) + means * math.log2(levels.means)
