"""The decoder's network, for codes and images of any size."""

import pytest
import torch

from lightsplit.attacks import Pairs
from lightsplit.attacks.decoder_networks import build_image_decoder


def weights(network):
    return sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize("image", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 15, 9)])
@pytest.mark.parametrize(
    "code",
    [(5,), (4, 4, 4), (3, 12, 12), (2, 8, 8), (2, 17, 17), (3, 40, 40), (7, 1, 1)],
)
def test_it_takes_codes_and_images_of_any_size(code, image):
    pairs = Pairs(
        torch.randn(12, *code), torch.randn(12, *code), torch.rand(12, *image)
    )
    network = build_image_decoder(pairs, width=4, blocks=1, seed=0)
    images = network(pairs.codes)
    assert images.shape == pairs.images.shape
    assert ((images >= 0) & (images <= 1)).all()


@pytest.mark.parametrize("activation", [(2, 4, 4), (3, 12, 12), (30,), (9, 4)])
def test_a_flat_code_is_read_through_the_estimated_activation(activation):
    pairs = Pairs(
        torch.randn(12, 6), torch.randn(12, *activation), torch.rand(12, 1, 8, 8)
    )
    network = build_image_decoder(pairs, width=4, blocks=1, seed=0)
    is_a_map = len(activation) == 3
    assert (network.stem.lift is not None) == is_a_map
    assert network(pairs.codes).shape == pairs.images.shape


def test_a_map_and_a_flat_code_of_as_many_values_have_the_same_capacity():
    flat, images = torch.randn(12, 288), torch.rand(12, 1, 28, 28)
    activations = torch.randn(12, 20, 12, 12)
    sizes = [
        weights(
            build_image_decoder(
                Pairs(codes, activations, images), width=32, blocks=1, seed=0
            )
        )
        for codes in (flat, flat.view(12, 2, 12, 12))
    ]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
