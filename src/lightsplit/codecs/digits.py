"""Digits of any base as bits: as many digits to a word as 62 bits hold.

    digits of base Q ──g at a time──► Σ c_j·Q^j ──► ⌈log₂ Q^g⌉ bits each

That costs at most one bit per word more than n·log₂ Q bits.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lightsplit.errors import CodecError

Bits = NDArray[np.uint8]
Whole = NDArray[np.int64]

_WORD = 62


@lru_cache(maxsize=4096)
def digit_bits(count: int, base: int) -> int:
    """Return the bits of ``count`` digits.

    Example:
        >>> digit_bits(64, 2), digit_bits(64, 3), digit_bits(64, 16)
        (64, 102, 256)
    """
    each = _digits_per_word(base)
    full, rest = divmod(count, each)
    return full * _word_bits(each, base) + _word_bits(rest, base)


def pack_digits(digits: Whole, base: int) -> Bits:
    """Return digits (n,) from 0 to base − 1 as bits."""
    each = _digits_per_word(base)
    full = len(digits) - len(digits) % each
    weights = base ** np.arange(each, dtype=np.int64)
    words = digits[:full].reshape(-1, each) @ weights
    last = digits[full:] @ weights[: len(digits) - full]
    bits = _to_bits(words, _word_bits(each, base))
    return np.concatenate(
        [bits, _to_bits(np.array([last]), _word_bits(len(digits) - full, base))]
    )


def unpack_digits(bits: Bits, count: int, base: int) -> Whole:
    """Return the digits (count,) that ``pack_digits`` was given; refuse other bits."""
    each = _digits_per_word(base)
    full, rest = divmod(count, each)
    width = _word_bits(each, base)
    words = _from_bits(bits[: full * width], width, full)
    last = _from_bits(bits[full * width :], _word_bits(rest, base), 1)
    weights = base ** np.arange(each, dtype=np.int64)
    if (words >= base**each).any() or (last >= base**rest).any():
        raise CodecError(f"expected digits from 0 to {base - 1}")
    digits = (words.reshape(-1, 1) // weights) % base
    rests = (last.reshape(-1, 1) // weights[:rest]) % base
    return np.concatenate([digits.ravel(), rests.ravel()]).astype(np.int64)


@lru_cache(maxsize=1024)
def _digits_per_word(base: int) -> int:
    each = 1
    while base ** (each + 1) <= 2**_WORD:
        each += 1
    return each


def _word_bits(digits: int, base: int) -> int:
    most: int = base**digits - 1
    return most.bit_length()


def _to_bits(words: Whole, width: int) -> Bits:
    bits = (words.reshape(-1, 1) >> np.arange(width)) & 1
    return bits.astype(np.uint8).ravel()


def _from_bits(bits: Bits, width: int, count: int) -> Whole:
    shaped = bits.reshape(count, width).astype(np.int64)
    return np.asarray(shaped @ (1 << np.arange(width, dtype=np.int64)), dtype=np.int64)
