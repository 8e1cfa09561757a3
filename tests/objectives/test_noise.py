import pytest
import torch

from lightsplit import seeding
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ConfigError
from lightsplit.objectives import Noise


def added(noise, values, bounded):
    with seeding.scope(1, "noise"):
        return noise.disturb(Code(values)).values - bounded


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(
    ("kind", "deviation", "kurtosis"), [("laplace", 2**0.5, 6), ("gaussian", 1, 3)]
)
def test_noise_has_its_size_and_shape(kind, deviation, kurtosis, is_training):
    values = torch.randn(2000, 20)
    noise = Noise(kind=kind, scale=0.3).train(is_training)
    drawn = added(noise, values, values.tanh())
    assert drawn.std().item() == pytest.approx(0.3 * deviation, rel=0.03)
    fourth = (drawn / drawn.std()).pow(4).mean().item()
    assert fourth == pytest.approx(kurtosis, rel=0.15)
    assert abs(drawn.mean().item()) < 0.01


def test_clipping_bounds_the_norm_of_long_codes_alone():
    values = torch.stack([torch.full((2, 2), 3.0), torch.full((2, 2), 0.1)])
    noise = Noise(bound="clip", norm=2.0, scale=1e-9)
    sent = noise.disturb(Code(values)).values
    torch.testing.assert_close(sent[0], torch.full((2, 2), 1.0))
    torch.testing.assert_close(sent[1], values[1])


def test_the_gradient_passes_the_bound():
    values = torch.randn(3, 4, requires_grad=True)
    Noise().disturb(Code(values)).values.sum().backward()
    torch.testing.assert_close(values.grad, 1 - values.detach().tanh() ** 2)


@pytest.mark.parametrize("codec", ["lightsplit-b", "c3"])
def test_bits_and_codes_that_mix_samples_are_refused(codec):
    codec = CODECS.create(codec, shape=(16,))
    with pytest.raises(ConfigError, match="continuous numbers, one row per sample"):
        Noise().check(codec, has_tail=True)


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"norm": -1.0}])
def test_noise_of_no_size_is_refused(options):
    with pytest.raises(ConfigError, match="a scale and a norm above 0"):
        Noise(**options)
