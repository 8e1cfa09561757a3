"""Sizes, layouts and the options of a codec."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.codecs import Code, Layout, TensorSpec, reduced_size
from lightsplit.codecs.base import Codec, Decoder, Encoder
from lightsplit.errors import CodecError, ConfigError


@given(st.integers(1, 10**6), st.floats(1, 10**6))
def test_the_reduced_size_is_the_floor_of_size_over_ratio(size, ratio):
    if size / ratio < 1:
        with pytest.raises(ConfigError, match="leaves nothing"):
            reduced_size(size, ratio)
    else:
        assert reduced_size(size, ratio) == math.floor(size / ratio)


@given(st.integers(1, 10**6))
def test_ratio_one_keeps_every_value(size):
    assert reduced_size(size, 1) == size


@pytest.mark.parametrize("ratio", [0.99, 0, -8, math.nan])
def test_a_ratio_below_one_is_refused(ratio):
    with pytest.raises(ConfigError, match="at least 1"):
        reduced_size(100, ratio)


def test_an_infinite_ratio_is_refused():
    with pytest.raises(ConfigError, match="leaves nothing"):
        reduced_size(100, math.inf)


def test_a_layout_counts_the_bytes_of_values_and_side():
    layout = Layout(TensorSpec((4, 10)), (TensorSpec((4, 10), torch.int16),))
    assert layout.side_bytes == 80
    assert layout.code_bytes == 160 + 80
    assert layout.gradient_bytes == 160


@pytest.mark.parametrize(
    "code",
    [
        Code(torch.zeros(2, 4)),
        Code(torch.zeros(2, 3, dtype=torch.float64)),
        Code(torch.zeros(2, 3), (torch.zeros(2),)),
    ],
)
def test_a_code_of_another_layout_is_refused(code):
    with pytest.raises(CodecError, match="expected"):
        Layout(TensorSpec((2, 3))).check(code)


def test_an_encoder_and_a_decoder_must_implement_forward():
    with pytest.raises(NotImplementedError):
        Encoder()(torch.zeros(1, 1))
    with pytest.raises(NotImplementedError):
        Decoder()(Code(torch.zeros(1, 1)))


def test_a_codec_lays_out_one_row_of_code_size_values_for_each_sample():
    class Plain(Codec):
        name = "plain"

    codec = Plain(shape=(2, 5), code_size=5)
    assert codec.layout(3) == Layout(TensorSpec((3, 5)))
    assert codec.ratio == 2
    assert codec.fingerprint == ""
