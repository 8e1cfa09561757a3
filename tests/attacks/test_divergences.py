"""Divergences agree with their definitions, written out pair by pair."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.attacks.divergences import gradient_penalty, multi_kernel_mmd


def naive_mmd(first, second):
    """Return the discrepancy by loops over pairs and kernels."""
    rows, n = torch.cat([first, second]).flatten(1), len(first)
    gaps = [[float((a - b).square().sum()) for b in rows] for a in rows]
    mean = sum(map(sum, gaps)) / (2 * n) ** 2
    total = 2 / (n - 1)
    for i in range(2 * n):
        for j in range(2 * n):
            kernel = sum(
                math.exp(-gaps[i][j] / (2 * 2.0**k * mean)) for k in range(-3, 2)
            )
            if (i < n) != (j < n):
                total -= kernel / n**2
            elif i != j:
                total += kernel / (n * (n - 1))
    return total


@settings(deadline=None, max_examples=20)
@given(
    count=st.integers(2, 5),
    offset=st.floats(-100, 100),
    seed=st.integers(0, 1000),
)
def test_the_discrepancy_is_that_of_a_loop_over_all_pairs(count, offset, seed):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(count, 2, 3, generator=generator, dtype=torch.double) + offset
    second = torch.randn(count, 2, 3, generator=generator, dtype=torch.double) * 2
    assert float(multi_kernel_mmd(first, second)) == pytest.approx(
        naive_mmd(first, second)
    )


def test_a_step_down_its_gradient_brings_the_sets_nearer():
    first = torch.randn(3, 4, dtype=torch.double)
    second = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    multi_kernel_mmd(first, second).backward()
    nearer = (second - 1e-3 * second.grad).detach()
    assert multi_kernel_mmd(first, nearer) < multi_kernel_mmd(first, second)


def test_sets_from_one_distribution_are_nearer_than_from_two():
    first, second = torch.randn(64, 10), torch.randn(64, 10)
    alike = multi_kernel_mmd(first, second)
    assert alike < multi_kernel_mmd(first, second + 1)


def test_a_linear_critic_has_the_penalty_of_its_slope():
    weights = torch.tensor([3.0, 4.0])
    penalty = gradient_penalty(lambda rows: rows @ weights, *torch.rand(2, 6, 2))
    assert penalty.item() == pytest.approx((5 - 1) ** 2)


def test_the_penalty_is_taken_between_the_two_sets():
    first, second = torch.zeros(500, 1), torch.full((500, 1), 2.0)
    # The slope of x² is 2x; with x uniform in 0 … 2 the mean of (2x - 1)² is 7/3.
    penalty = gradient_penalty(lambda rows: rows.square(), first, second)
    assert penalty.item() == pytest.approx(7 / 3, rel=0.15)


def test_the_penalty_is_that_of_slopes_taken_sample_by_sample():
    critic = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh())
    point = torch.rand(4, 3)
    slopes = []
    for row in point:
        single = row.clone().requires_grad_()
        critic(single).sum().backward()
        slopes.append((single.grad.norm() - 1) ** 2)
    expected = torch.stack(slopes).mean()
    torch.testing.assert_close(gradient_penalty(critic, point, point), expected)


def test_the_penalty_teaches_the_critic():
    critic = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh())
    gradient_penalty(critic, torch.rand(4, 3), torch.rand(4, 3)).backward()
    assert float(critic[0].weight.grad.abs().sum()) > 0
