"""The victims of SDAR and FORA have the sizes of the released ones at every level."""

import pytest
import torch

from lightsplit.models import CUTS, MODELS

# Level: weights of head and backbone, shape of an activation.
RESNET20 = {
    "3": (14_480, 257_344, (16, 32, 32)),
    "4": (29_008, 242_816, (32, 16, 16)),
    "5": (47_568, 224_256, (32, 16, 16)),
    "6": (66_128, 205_696, (32, 16, 16)),
    "7": (123_856, 147_968, (64, 8, 8)),
    "8": (197_840, 73_984, (64, 8, 8)),
    "9": (271_824, 0, (64, 8, 8)),
}
MOBILENET = {
    "1": (32, 16, 16),
    "2": (64, 16, 16),
    "3": (128, 8, 8),
    "4": (256, 4, 4),
}


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_every_level_is_a_cut():
    assert CUTS["resnet20"].names == tuple(RESNET20)
    assert CUTS["mobilenet"].names == tuple(MOBILENET)


@pytest.mark.parametrize("level", RESNET20)
def test_resnet20_has_the_weights_and_shapes_of_the_release(level):
    head, backbone, shape = RESNET20[level]
    parts = MODELS.create("resnet20", cut=level).split()
    assert parameters(parts.head) == head
    assert parameters(parts.backbone) == backbone
    assert parameters(parts.tail) == 650
    activation = parts.head(torch.rand(2, 3, 32, 32))
    assert activation.shape[1:] == shape
    assert bool((activation >= 0).all())  # a block ends in its ReLU


@pytest.mark.parametrize("level", MOBILENET)
def test_mobilenet_has_the_shapes_of_the_release(level):
    parts = MODELS.create("mobilenet", cut=level).split()
    activation = parts.head(torch.rand(2, 3, 32, 32))
    assert activation.shape[1:] == MOBILENET[level]


def test_mobilenet_has_the_weights_of_the_released_level():
    parts = MODELS.create("mobilenet", cut="2").split()
    assert parameters(parts.head) == 3_456
    assert parameters(parts.backbone) + parameters(parts.tail) == 3_213_770
