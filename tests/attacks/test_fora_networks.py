"""FORA's networks have the sizes of its released level, and fit the other levels."""

import pytest
import torch

from lightsplit.attacks.fora_networks import make_critic, make_decoder, make_substitute
from lightsplit.errors import AuditError

IMAGE = (3, 32, 32)
LEVELS = [(32, 16, 16), (64, 16, 16), (128, 8, 8), (256, 4, 4), (8, 32, 32)]


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_every_network_has_as_many_weights_as_the_released_one():
    features = (64, 16, 16)
    assert parameters(make_substitute(features, IMAGE)) == 38_976
    assert parameters(make_critic(features)) == 8_041_089
    assert parameters(make_decoder(features, IMAGE)) == 155_145


@pytest.mark.parametrize("features", LEVELS)
def test_a_substitute_has_the_victims_shape_and_a_decoder_gives_images(features):
    images = torch.rand(2, *IMAGE) * 2 - 1
    made = make_substitute(features, IMAGE)(images)
    assert made.shape[1:] == features
    assert make_critic(features, width=16)(made).shape == (2, 1)
    decoded = make_decoder(features, IMAGE)(made)
    assert decoded.shape == images.shape
    assert bool((decoded.abs() <= 1).all())


@pytest.mark.parametrize("features", [(512,), (5, 2, 2), (5, 12, 12), (5, 16, 8)])
def test_features_that_cannot_be_doubled_to_an_image_are_refused(features):
    with pytest.raises(AuditError, match=r"expected \(channels, 32, 32\).*got \("):
        make_decoder(features, IMAGE)
