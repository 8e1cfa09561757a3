"""Distances between two sets of features, for a network that imitates another.

    multi_kernel_mmd    maximum mean discrepancy under five Gaussian kernels
    gradient_penalty    keeps a critic's slope near 1 (Gulrajani et al., 2017)

Squared distances come from the Gram matrix. Taking a difference for every pair would
need (2n)² · d numbers: 1 GB for 64 activations of 64x16x16.
"""

from collections.abc import Callable

import torch
from torch import Tensor

BANDWIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)


def multi_kernel_mmd(first: Tensor, second: Tensor) -> Tensor:
    """Return the discrepancy of two sets (n, …) of equal size, n > 1.

    A kernel's variance is one of BANDWIDTHS times the mean squared distance, which is
    taken as a constant. No row is compared with itself. The result includes the
    constant 2/(n-1) that FORA adds.
    """
    count = len(first)
    distances = _squared_distances(torch.cat([first, second]).flatten(1))
    mean = distances.detach().mean()
    kernel = torch.stack(
        [torch.exp(-distances / (2 * width * mean)) for width in BANDWIDTHS]
    ).sum(dim=0)
    kernel.fill_diagonal_(0)
    pairs = count * (count - 1)
    same = kernel[:count, :count].sum() + kernel[count:, count:].sum()
    across = kernel[:count, count:].sum() + kernel[count:, :count].sum()
    return same / pairs - across / count**2 + 2 / (count - 1)


def gradient_penalty(
    critic: Callable[[Tensor], Tensor], first: Tensor, second: Tensor
) -> Tensor:
    """Return (‖slope‖ - 1)² of the critic between two sets (n, …), on average."""
    ones = (1,) * (first.ndim - 1)
    share = torch.rand(len(first), *ones, device=first.device)
    between = (share * first + (1 - share) * second).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    lengths: Tensor = slopes.flatten(1).square().sum(dim=1).sqrt()
    return (lengths - 1).square().mean()


def _squared_distances(rows: Tensor) -> Tensor:
    """Return the distance of every pair (2n, 2n); centring the rows changes none."""
    rows = rows - rows.detach().mean(dim=0)
    lengths = rows.square().sum(dim=1)
    distances = lengths.unsqueeze(1) + lengths - 2 * rows @ rows.T
    return distances.clamp(min=0).fill_diagonal_(0)
