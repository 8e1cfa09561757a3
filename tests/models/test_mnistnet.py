"""MnistNet has the sizes of UnSplit's release at both of its cuts."""

import pytest
import torch

from lightsplit.models import MODELS


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_whole_has_as_many_parameters_as_the_release():
    assert parameters(MODELS.create("mnistnet").module) == 45_278


@pytest.mark.parametrize(
    ("cut", "weights", "shape"), [("2", 208, (8, 12, 12)), ("4", 3_424, (16, 8, 8))]
)
def test_a_head_ends_after_the_layer_that_its_cut_counts(cut, weights, shape):
    parts = MODELS.create("mnistnet", cut=cut).split()
    assert parameters(parts.head) == weights
    assert parts.head(torch.rand(2, 1, 28, 28)).shape[1:] == shape


def test_the_tail_is_the_last_layer():
    parts = MODELS.create("mnistnet").split()
    assert parameters(parts.tail) == 84 * 10 + 10
