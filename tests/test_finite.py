import math

import pytest
import torch

from lightsplit.finite import all_finite

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_one_bad_number_among_many_is_found(dtype, bad):
    numbers = torch.ones(1000, dtype=dtype)
    assert all_finite(numbers)
    numbers[617] = bad
    assert not all_finite(numbers)


def test_infinities_of_both_signs_do_not_cancel():
    assert not all_finite(torch.tensor([math.inf, -math.inf]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_that_overflow_together_are_finite(dtype):
    assert all_finite(torch.full((100,), torch.finfo(dtype).max, dtype=dtype))


def test_integers_and_nothing_at_all_are_finite():
    assert all_finite(torch.tensor([2**31 - 1], dtype=torch.int32))
    assert all_finite(torch.empty(0))
