import pytest
import torch

from lightsplit import seeding
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import BitFlips


def flipped(rate, code):
    with seeding.scope(3, "flips"):
        return BitFlips(rate=rate).disturb(code).values


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_each_bit_is_flipped_with_the_given_probability(rate):
    code = Code(torch.ones(1000, 16))
    share = (flipped(rate, code) < 0).float().mean().item()
    spread = (rate * (1 - rate) / 16_000) ** 0.5
    assert abs(share - rate) < 5 * spread


def test_the_gradient_of_a_flipped_bit_is_flipped():
    values = torch.ones(20, 4, requires_grad=True)
    sent = flipped(0.3, Code(values))
    sent.sum().backward()
    assert torch.equal(values.grad, sent.detach())


def test_nothing_is_flipped_outside_training():
    code = Code(torch.ones(20, 4))
    assert BitFlips(rate=0.4).eval().disturb(code) is code


@pytest.mark.parametrize("rate", [0.0, 0.5, -0.1, float("nan")])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(ConfigError, match=r"rate between 0 and 0\.5"):
        BitFlips(rate=rate)


def test_codes_that_are_not_bits_are_refused():
    with pytest.raises(ConfigError, match="needs a code of bits"):
        BitFlips().check(CODECS.create("fsq", shape=(8,)), has_tail=True)
