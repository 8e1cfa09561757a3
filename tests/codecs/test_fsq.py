import pytest
import torch

from lightsplit.codecs import CODECS, FiniteScalarQuantisation
from lightsplit.codecs.base import Code
from lightsplit.codecs.bit_packing import pack
from lightsplit.errors import CodecError, ConfigError


def test_a_value_is_the_level_nearest_to_the_tanh():
    encoder = FiniteScalarQuantisation((4,), values=3, levels=5).encoder
    latent = torch.tensor([[-9.0, -0.6, 0.1], [0.3, 0.7, 9.0]])
    assert encoder.round(latent).tolist() == [[-1, -0.5, 0], [0.5, 0.5, 1]]


def test_the_gradient_is_that_of_tanh():
    encoder = FiniteScalarQuantisation((4,), values=3, levels=5).encoder
    latent = torch.randn(2, 3, requires_grad=True)
    weight = torch.randn(2, 3)
    (encoder.round(latent) * weight).sum().backward()
    expected = weight * (1 - latent.detach().tanh() ** 2)
    torch.testing.assert_close(latent.grad, expected)


@pytest.mark.parametrize(("levels", "bits"), [(2, 1), (3, 2), (4, 2), (5, 3), (256, 8)])
def test_a_value_takes_the_bits_that_its_levels_need(levels, bits):
    codec = FiniteScalarQuantisation((4,), values=3, levels=levels)
    assert codec.packed_bits == 3 * bits
    code = codec.encoder(torch.randn(50, 4))
    assert len(code.values.unique()) <= levels
    assert torch.equal(codec.unpack(codec.pack(code)).values, code.values.detach())


def test_a_level_that_does_not_exist_is_refused():
    codec = FiniteScalarQuantisation((4,), values=3, levels=5)
    with pytest.raises(CodecError, match="levels from 0 to 4, got 6"):
        codec.unpack(Code(pack(torch.tensor([[0, 4, 6]]), 3)))


@pytest.mark.parametrize("levels", [1, 0, 257])
def test_impossible_levels_are_refused(levels):
    with pytest.raises(
        ConfigError, match=f"levels must be from 2 to 256, got {levels}"
    ):
        CODECS.create("fsq", shape=(4,), levels=levels)
