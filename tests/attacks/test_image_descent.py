"""Descent on images by the error of their codes."""

import pytest
import torch
from torch import nn

from lightsplit.attacks.image_descent import (
    Descent,
    code_error,
    descend,
    total_variation,
)


def test_total_variation_is_zero_for_a_flat_image_and_not_for_a_checkerboard():
    board = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(1, 1, 4, 4)
    assert total_variation(torch.full((1, 1, 8, 8), 0.3)).item() == 0
    assert total_variation(board).item() == pytest.approx(2, abs=0.03)


def test_an_error_is_relative_to_the_code_that_is_wanted():
    wanted = torch.tensor([[3.0, 4.0], [30.0, 40.0]])
    assert code_error(wanted * 1.1, wanted).tolist() == pytest.approx([0.01, 0.01])
    assert code_error(wanted, wanted).tolist() == [0, 0]


def test_of_all_images_with_the_same_code_the_nearest_to_the_start_is_found():
    client = nn.Sequential(nn.Flatten(), nn.Linear(16, 4, bias=False)).eval()
    torch.manual_seed(0)
    nn.init.orthogonal_(client[1].weight)
    truth = 0.3 + 0.4 * torch.rand(1, 1, 4, 4)
    start = (truth + 0.05 * torch.randn_like(truth)).clamp(0, 1)
    wanted = client(truth).detach()
    descent = Descent(steps=400, lr=0.02, tv=0.0, near=0.1)
    found = descend(client, wanted, start, descent, lambda: None)
    back = client[1].weight.T  # its rows are orthonormal: the least move is along them
    move = (wanted - client(start)) @ back.T
    assert code_error(client(found), wanted).item() < 1e-3
    torch.testing.assert_close(
        found.flatten(1), start.flatten(1) + move, atol=0.01, rtol=0
    )


def test_tv_falls_from_its_first_weight_to_its_own():
    descent = Descent(steps=100, lr=1.0, tv=0.01, tv_at_first=300.0)
    assert descent.tv_weight(0) == pytest.approx(3.0)
    assert descent.tv_weight(70) == descent.tv_weight(99) == pytest.approx(0.01)
