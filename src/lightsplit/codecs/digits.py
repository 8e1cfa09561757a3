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
    """Return each row of digits (r, n) from 0 to base − 1 as bits, row by row."""
    each = _digits_per_word(base)
    rows, count = digits.shape
    full, rest = divmod(count, each)
    weights = base ** np.arange(each, dtype=np.int64)
    words = digits[:, : full * each].reshape(rows, full, each) @ weights
    last = digits[:, full * each :] @ weights[:rest]
    bits = _to_bits(words, _word_bits(each, base)).reshape(rows, -1)
    ends = _to_bits(last, _word_bits(rest, base)).reshape(rows, -1)
    return np.concatenate([bits, ends], axis=1).ravel()


def unpack_digits(bits: Bits, rows: int, count: int, base: int) -> Whole:
    """Return the digits (rows, count) that were packed; refuse other bits."""
    each = _digits_per_word(base)
    full, rest = divmod(count, each)
    width = _word_bits(each, base)
    table = bits.reshape(rows, digit_bits(count, base))
    words = _from_bits(table[:, : full * width].reshape(rows, full, width))
    last = _from_bits(table[:, full * width :])
    if (words >= base**each).any() or (last >= base**rest).any():
        raise CodecError(f"expected digits from 0 to {base - 1}")
    weights = base ** np.arange(each, dtype=np.int64)
    digits = (words[..., None] // weights) % base
    ends = (last[:, None] // weights[:rest]) % base
    return np.concatenate([digits.reshape(rows, -1), ends], axis=1)


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
    bits = (words[..., None] >> np.arange(width)) & 1
    return np.asarray(bits, dtype=np.uint8)


def _from_bits(bits: Bits) -> Whole:
    places = np.left_shift(1, np.arange(bits.shape[-1], dtype=np.int64))
    return np.asarray(bits.astype(np.int64) @ places, dtype=np.int64)
