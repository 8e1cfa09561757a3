import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ConfigError


def make(size=60, **options):
    return CODECS.create("mask-sparse", shape=(size,), **{"ratio": 10} | options)


def test_the_published_setting_sends_2_bits_of_each_value_and_one_value_in_a_hundred():
    codec = CODECS.create("mask-sparse", shape=(4096,))
    assert codec.packed_layout(64).code_bytes == 64 * (2 * 4096 + 32 * 40) // 8
    raw = 64 * 4096 * 4
    assert raw / codec.packed_layout(64).code_bytes == pytest.approx(13.8, abs=0.1)


@pytest.mark.parametrize("signed", [False, True])
def test_the_largest_values_of_the_batch_are_kept_exactly(signed):
    codec, activation = make(signed=signed), torch.randn(5, 60)
    activation = activation if signed else activation.abs()
    activation[3] *= 10  # nearly all kept values are this sample's
    read = codec.encoder(activation).values
    largest = activation.abs().flatten().topk(5 * 6).indices
    assert torch.equal(read.flatten()[largest], activation.flatten()[largest])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.booleans(), st.integers(0, 99))
def test_other_values_are_off_by_half_a_level_or_the_last_one(bits, signed, seed):
    generator = torch.Generator().manual_seed(seed)
    activation = torch.randn(4, 60, generator=generator)
    activation = activation if signed else activation.relu()
    codec = make(mask_bits=bits, signed=signed)
    read = codec.encoder(activation).values
    least = activation.abs().flatten().topk(4 * 6).values.min()
    steps = 2 ** (bits - 1) if signed else 2**bits - 1
    # The level just below the smallest kept value is not there: its code says kept.
    assert float((read - activation).abs().max()) <= float(least) / steps * 1.0001


def test_levels_of_two_bits_are_those_of_the_source():
    activation = torch.tensor([[3.0, 2.9, 1.6, 1.4, 0.4, 0.0, 5.0, 0.6, 0.1, 0.2]])
    codec = CODECS.create("mask-sparse", shape=(10,), ratio=5)
    read = codec.encoder(activation).values
    expected = [[3.0, 2.0, 2.0, 1.0, 0.0, 0.0, 5.0, 1.0, 0.0, 0.0]]
    torch.testing.assert_close(read, torch.tensor(expected))


def test_an_activation_of_zeros_comes_back():
    codec = make()
    code = codec.encoder(torch.zeros(3, 60))
    assert torch.equal(codec.unpack(codec.pack(code)).values, torch.zeros(3, 60))


def test_the_gradient_passes_straight_through():
    activation = torch.rand(3, 60, requires_grad=True)
    weight = torch.randn(3, 60)
    codec = make()
    (codec.decoder(codec.encoder(activation)) * weight).sum().backward()
    assert torch.equal(activation.grad, weight)


def test_negative_numbers_are_refused_unless_they_are_expected():
    with pytest.raises(CodecError, match=r"as behind a ReLU.*signed=true"):
        make().encoder(torch.full((2, 60), -0.5))


def test_bytes_that_are_no_batch_are_refused():
    codec = make()
    written = codec.pack(codec.encoder(torch.rand(3, 60))).values
    with pytest.raises(CodecError, match="expects the bytes of a batch"):
        codec.unpack(Code(written[:-1]))
    with pytest.raises(CodecError, match="expects the bytes of a batch"):
        codec.unpack(Code(torch.zeros(3, 60)))
    broken = written.clone()
    broken[-1] ^= 1
    broken[-1] ^= 2
    with pytest.raises(CodecError, match="a mask with 18 kept values"):
        codec.unpack(Code(broken | 3))
    endless = written.clone()
    endless[:4] = torch.tensor([float("inf")]).view(torch.uint8)
    with pytest.raises(CodecError, match="kept values that are finite"):
        codec.unpack(Code(endless))


@pytest.mark.parametrize("bits", [0, 9])
def test_a_mask_of_other_bits_is_refused(bits):
    with pytest.raises(ConfigError, match="mask_bits must be from 1 to 8"):
        make(mask_bits=bits)
