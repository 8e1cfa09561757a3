import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import BitBalance, ClientView


def view(latent):
    return ClientView(None, latent, Code(latent.sign()), None, None, latent)


def test_it_counts_the_bits_that_do_not_divide_the_samples():
    latent = torch.tensor([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]]) * 100
    assert BitBalance()(view(latent)).item() == pytest.approx(2, abs=1e-5)


def test_it_pulls_an_unbalanced_bit_back():
    latent = torch.tensor([[0.3], [0.5]], requires_grad=True)
    BitBalance()(view(latent)).backward()
    assert bool((latent.grad > 0).all())


def test_other_codes_and_steepness_below_zero_are_refused():
    with pytest.raises(ConfigError, match="needs a code of bits"):
        BitBalance().check(CODECS.create("topk", shape=(8,)), has_tail=True)
    with pytest.raises(ConfigError, match="steepness above 0, got -1"):
        BitBalance(steepness=-1.0)
