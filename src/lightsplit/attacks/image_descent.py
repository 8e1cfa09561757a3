"""Descent on images: those whose codes, by the true client, are the observed ones.

    x by Adam, kept in [0, 1], on

    ‖client(x) − z̃‖² / ‖z̃‖²  +  TV · mean difference of neighbouring pixels
                              +  L2 · mean square of x
                              +  NEAR · mean square of (x − a first guess)

The code's error is relative, so that one set of weights serves every cut and scale. TV
sums absolute differences, which leaves edges sharp, and begins many times as strong:
smooth images first, details later. Pixels are clamped, because a sigmoid never reaches
black.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

SETTLED = 0.7  # of the steps, in which TV falls to its own weight
L2_WEIGHT = 1e-3
ROUNDING = 1e-2  # smaller differences count as squares, so that TV is smooth


@dataclass(frozen=True)
class Descent:
    """How Adam goes down.

    Attributes:
        steps: of Adam, whose rate falls to zero along a cosine.
        lr: the first rate.
        tv: the weight of TV at the end.
        tv_at_first: times as strong at the beginning.
        near: the weight of staying near the start.
    """

    steps: int
    lr: float
    tv: float
    tv_at_first: float = 1.0
    near: float = 0.0

    def tv_weight(self, step: int) -> float:
        """Return the weight of TV after so many steps."""
        left = max(0.0, 1 - step / self.steps / SETTLED)
        return self.tv * math.pow(self.tv_at_first, left)


def descend(
    client: nn.Module,
    codes: Tensor,
    start: Tensor,
    descent: Descent,
    tick: Callable[[], None],
) -> Tensor:
    """Return the images that Adam reaches from ``start``."""
    images = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([images], lr=descent.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, descent.steps)
    for step in range(descent.steps):
        smooth = descent.tv_weight(step) * total_variation(images)
        small = L2_WEIGHT * _mean_square(images)
        near = descent.near * _mean_square(images - start)
        # A sum, not a mean: each image has its own problem, whatever the batch.
        loss = (code_error(client(images), codes) + smooth + small + near).sum()
        (images.grad,) = torch.autograd.grad(loss, [images])
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            images.clamp_(0, 1)
        tick()
    return images.detach()


def code_error(codes: Tensor, wanted: Tensor) -> Tensor:
    """Return for each row the squared distance over the squared length wanted."""
    distance = (codes - wanted).flatten(1).square().sum(dim=1)
    return distance / wanted.flatten(1).square().sum(dim=1).clamp_min(1e-12)


def total_variation(images: Tensor) -> Tensor:
    """Return for each image the mean absolute difference of neighbouring pixels."""
    return _mean_size(images.diff(dim=-2)) + _mean_size(images.diff(dim=-1))


def _mean_size(differences: Tensor) -> Tensor:
    """Return the mean absolute value of each row's differences, smooth at zero."""
    sizes = (differences.square() + ROUNDING**2).sqrt() - ROUNDING
    return sizes.flatten(1).mean(dim=1)


def _mean_square(images: Tensor) -> Tensor:
    return images.flatten(1).square().mean(dim=1)
