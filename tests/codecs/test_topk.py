import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import CodecError, ConfigError


def make(shape=(4, 5), ratio=4.0):
    return CODECS.create("topk", shape=shape, ratio=ratio)


@settings(max_examples=30, deadline=None)
@given(
    batch_size=st.integers(1, 4),
    size=st.integers(1, 60),
    ratio=st.floats(1, 8),
    seed=st.integers(0, 99),
)
def test_no_other_choice_of_k_values_is_nearer(batch_size, size, ratio, seed):
    codec = make((size,), min(ratio, size))
    generator = torch.Generator().manual_seed(seed)
    activation = torch.randn(batch_size, size, generator=generator)
    lifted = codec.decoder(codec.encoder(activation))
    lost = (activation - lifted).square().sum(dim=1)
    ascending = activation.square().sort(dim=1).values
    least = ascending[:, : size - codec.code_size].sum(dim=1)
    torch.testing.assert_close(lost, least)


def test_kept_values_are_unchanged_and_the_others_are_zero():
    codec, activation = make(), torch.randn(3, 4, 5)
    lifted = codec.decoder(codec.encoder(activation))
    is_kept = lifted != 0
    assert is_kept.flatten(1).sum(dim=1).tolist() == [5, 5, 5]
    assert torch.equal(lifted[is_kept], activation[is_kept])


def test_only_kept_values_get_a_gradient():
    codec = make()
    activation = torch.randn(3, 4, 5, requires_grad=True)
    lifted = codec.decoder(codec.encoder(activation))
    lifted.sum().backward()
    assert torch.equal(activation.grad, (lifted != 0).float())


def test_a_value_at_the_last_place_comes_back_there():
    codec = make((32769,), 1024)
    activation = torch.zeros(1, 32769)
    activation[0, -1] = 1
    code = codec.unpack(codec.pack(codec.encoder(activation)))
    assert torch.equal(codec.decoder(code), activation)


def test_the_bytes_count_values_and_places_up_and_values_down():
    codec = make((4096,), 8)
    assert codec.packed_layout(64).code_bytes == 64 * 512 * 4 + 64 * 2221 // 8
    assert codec.layout(64).gradient_bytes == 64 * 512 * 4


@pytest.mark.parametrize("place", [-1, 20])
def test_a_place_outside_the_activation_is_refused(place):
    places = torch.full((2, 5), place, dtype=torch.int16)
    with pytest.raises(CodecError, match="places from 0 to 19"):
        make().decoder(Code(torch.zeros(2, 5), (places,)))


def test_values_without_places_are_refused():
    with pytest.raises(CodecError, match="one place for each value"):
        make().decoder(Code(torch.zeros(2, 5)))


def test_a_ratio_that_leaves_nothing_is_refused():
    with pytest.raises(ConfigError, match="leaves nothing of 20"):
        make(ratio=21)
