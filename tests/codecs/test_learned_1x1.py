import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError


def make(shape=(16, 5, 5), ratio=4.0):
    return CODECS.create("learned-1x1", shape=shape, ratio=ratio)


@pytest.mark.parametrize(
    ("channels", "ratio", "kept", "realised"),
    [
        (64, 8, 8, 8),
        (20, 8, 2, 10),
        (20, 16, 1, 20),
        (20, 32, 1, 20),
        (29, 8, 3, 29 / 3),
    ],
)
def test_the_ratio_is_the_one_that_whole_channels_allow(
    channels, ratio, kept, realised
):
    codec = make((channels, 3, 3), ratio)
    assert codec.encoder.convolution.out_channels == kept
    assert codec.ratio == pytest.approx(realised)


def test_both_convolutions_have_biases():
    codec = make()
    assert sum(p.numel() for p in codec.encoder.parameters()) == 16 * 4 + 4
    assert sum(p.numel() for p in codec.decoder.parameters()) == 4 * 16 + 16


def test_every_pixel_is_coded_alike():
    codec = make()
    activation = torch.randn(2, 16, 5, 5)
    shifted = codec.encoder(activation.roll(2, dims=3)).values
    expected = codec.encoder(activation).values.roll(2, dims=3)
    torch.testing.assert_close(shifted, expected)


def test_an_activation_that_is_no_image_is_refused():
    with pytest.raises(ConfigError, match=r"\(C, H, W\), got \(400,\)"):
        make(shape=(400,))
