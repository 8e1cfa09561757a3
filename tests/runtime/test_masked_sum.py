import pytest
import torch

from lightsplit.errors import RunError, SealError
from lightsplit.protocol import Share
from lightsplit.runtime import masked_sum
from lightsplit.runtime.masked_sum import MaskedSum, from_whole, to_whole
from lightsplit.transports.sealing import SealingKey

KEY = SealingKey(bytes(range(32)))


def shares(parts, number=3, key=KEY):
    masks = MaskedSum(key, "run", number)
    return [Share(i, 0, *masks.hide(to_whole(part))) for i, part in enumerate(parts)]


def test_the_sum_is_exact_in_any_order():
    parts = [torch.randn(50, dtype=torch.float64) for _ in range(4)]
    expected = sum(to_whole(part) for part in parts)
    hidden = shares(parts)
    for order in (hidden, hidden[::-1]):
        found = MaskedSum(KEY, "run", 3).read(*masked_sum.added(order))
        assert torch.equal(found, expected)
    torch.testing.assert_close(from_whole(expected), sum(parts), rtol=0, atol=2**-34)


def test_the_server_sees_evenly_distributed_numbers_and_never_the_same_twice():
    part = torch.zeros(4000, dtype=torch.float64)
    first, second = shares([part, part])
    assert not torch.equal(first.numbers, second.numbers)
    again = shares([part])[0]  # the same owner repeats the same round
    assert not torch.equal(first.numbers, again.numbers)
    bits = (first.numbers.numpy().view("uint8")[:, None] >> torch.arange(8).numpy()) & 1
    assert abs(bits.mean() - 0.5) < 0.01


@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_sum_that_the_server_changed_is_refused(place):
    numbers, nonces = masked_sum.added(shares([torch.ones(9)] * 2))
    numbers[place] += 2**31 - 1  # a multiple of one of the primes
    with pytest.raises(SealError, match="altered"):
        MaskedSum(KEY, "run", 3).read(numbers, nonces)


def test_a_part_of_another_round_key_or_a_part_twice_is_refused():
    honest = shares([torch.ones(9)] * 2)
    other = shares([torch.ones(9)] * 2, number=4)
    foreign = shares([torch.ones(9)] * 2, key=SealingKey(bytes(32)))
    for forged in ([honest[0], other[1]], [honest[0], foreign[1]], [honest[0]] * 2):
        with pytest.raises(SealError):
            MaskedSum(KEY, "run", 3).read(*masked_sum.added(forged))


@pytest.mark.parametrize("value", [1e6, float("nan"), float("inf")])
def test_a_number_that_does_not_fit_is_refused(value):
    with pytest.raises(RunError, match="too large"):
        to_whole(torch.tensor([0.0, value]))


def test_parts_of_different_lengths_are_not_added():
    with pytest.raises(RunError, match="one length"):
        masked_sum.added(shares([torch.ones(9), torch.ones(8)]))
