import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs.digits import digit_bits, pack_digits, unpack_digits
from lightsplit.errors import CodecError


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(2, 256), st.integers(0, 99))
def test_digits_come_back_and_cost_little_more_than_their_logarithm(count, base, seed):
    digits = np.random.default_rng(seed).integers(0, base, (3, count))
    bits = pack_digits(digits, base)
    assert len(bits) == 3 * digit_bits(count, base)
    assert np.array_equal(unpack_digits(bits, 3, count, base), digits)
    least = count * math.log2(base)
    assert least <= len(bits) / 3 + 1e-9 <= least * 1.15 + 2


def test_bits_that_are_no_digits_are_refused():
    with pytest.raises(CodecError, match="digits from 0 to 2"):
        unpack_digits(np.ones(digit_bits(2, 3), dtype=np.uint8), 1, 2, 3)
