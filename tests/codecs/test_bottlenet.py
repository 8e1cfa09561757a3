import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.codecs.bottlenet import Channel
from lightsplit.errors import ConfigError


def make(shape=(8, 4, 6), **options):
    return CODECS.create("bottlenet", shape=shape, **{"ratio": 4} | options)


def test_halving_keeps_the_ratio_with_more_channels():
    codec = make(halve=True)
    assert codec.code_shape == (8, 2, 3)
    assert codec.ratio == make().ratio == 4
    activation = torch.randn(3, 8, 4, 6)
    assert codec.decoder(codec.encoder(activation)).shape == activation.shape


def test_behind_erasures_a_value_takes_one_byte():
    codec = make(channel="erasure")
    code = codec.encoder(torch.randn(5, 8, 4, 6))
    packed = codec.pack(code)
    codec.packed_layout(5).check(packed)
    assert packed.values.nbytes == 5 * 2 * 4 * 6
    assert torch.equal(codec.unpack(packed).values, code.values)
    assert codec.packed_bits == 8 * codec.code_size


def test_the_highest_value_is_not_wrapped_to_zero():
    sent = torch.tensor([0.0, 0.5, 1.0])
    arrived = Channel("erasure", 0.1).passed(sent, torch.tensor(0.0))
    torch.testing.assert_close(arrived, torch.tensor([0.0, 128 / 255, 1.0]))


def test_erasures_take_the_wanted_share_of_the_bits():
    arrived = Channel("erasure", 0.3).passed(torch.ones(20_000), torch.tensor(0.3))
    bits = (arrived * 255).round().long().unsqueeze(1) >> torch.arange(8) & 1
    assert bits.float().mean().item() == pytest.approx(0.7, abs=0.01)


def test_gaussian_noise_has_the_level():
    arrived = Channel("awgn", 0.2).passed(torch.zeros(20_000), torch.tensor(0.2))
    assert arrived.std().item() == pytest.approx(0.2, rel=0.03)


def test_a_level_is_drawn_in_training_and_is_the_highest_in_prediction():
    channel, like = Channel("awgn", 0.4), torch.zeros(1)
    drawn = [float(channel.draw_level(like, is_training=True)) for _ in range(300)]
    assert 0 <= min(drawn) < 0.05
    assert 0.35 < max(drawn) <= 0.4
    assert float(channel.draw_level(like, is_training=False)) == pytest.approx(0.4)


@pytest.mark.parametrize("channel", ["none", "awgn", "erasure"])
def test_the_gradient_passes_the_channel(channel):
    values = torch.rand(50, requires_grad=True)
    passed = Channel(channel, 0.3).passed(values, torch.tensor(0.3))
    passed.sum().backward()
    assert torch.equal(values.grad, torch.ones(50))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (8,)}, r"a shape \(C, H, W\)"),
        ({"shape": (8, 3, 4), "halve": True}, "an even height and width"),
        ({"channel": "erasure", "level": 1.0}, "below 1 for erasures"),
        ({"channel": "awgn", "level": 0.0}, "a level above 0"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        make(**options)
