import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.runtime.magnitudes import check_finite, check_norm, check_numbers


def refused(call, *arguments):
    with pytest.raises(ProtocolError) as caught:
        call(*arguments)
    return caught.value


def test_numbers_up_to_the_limit_pass():
    check_numbers("code", torch.tensor([-5.0, 5.0]), 5.0)
    check_numbers("code", torch.zeros(0), 5.0)


@pytest.mark.parametrize("number", [5.1, -5.1, 3e38])
def test_a_number_beyond_the_limit_is_refused_with_both_values(number):
    error = refused(check_numbers, "code", torch.tensor([0.0, number]), 5.0)
    assert error.code == "out-of-range"
    assert "norm limit of 5" in str(error)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(number):
    assert refused(check_numbers, "x", torch.tensor([number]), 5.0).code == "not-finite"
    assert refused(check_norm, "x", [torch.tensor([number])], 5.0).code == "not-finite"
    assert refused(check_finite, "x", [torch.tensor([number])]).code == "not-finite"


def test_the_norm_is_that_of_all_tensors_together():
    check_norm("gradient", [torch.tensor([3.0]), torch.tensor([4.0])], 5.0)
    check_norm("gradient", [], 5.0)
    tensors = [torch.tensor([3.0]), torch.tensor([4.1])]
    assert refused(check_norm, "gradient", tensors, 5.0).code == "out-of-range"


def test_a_sum_of_squares_that_overflows_is_refused():
    assert refused(check_norm, "gradient", [torch.full((9,), 3e38)], 1e6)


def test_integers_are_finite():
    check_finite("buffers", [torch.tensor(3)])


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_one_number_among_many_tensors_is_found(place):
    sizes, dtypes = (3, 10_000, 1, 5), (torch.float32, torch.float32, torch.float64)
    tensors = [torch.ones(n, dtype=dtypes[n % 3]) for n in sizes]
    tensors += [torch.tensor(7), torch.full((4,), 3e38)]  # finite, their sum is not
    check_finite("statistics", tensors)
    tensors[place][-1] = float("-inf")
    assert refused(check_finite, "statistics", tensors).code == "not-finite"


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_squares_of_short_floats_are_summed_as_longer_ones(kind):
    tensors = [torch.full((90_000,), 1000.0, dtype=kind)]
    check_norm("gradient", tensors, 3.001e5)
    refused(check_norm, "gradient", tensors, 2.999e5)
