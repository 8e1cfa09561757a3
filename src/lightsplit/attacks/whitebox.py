"""White-box inversion: the image whose code, by the true head, is the observed one.

    x by Adam, kept in [0, 1], on
    ‖client(x) − z̃‖² / ‖z̃‖²  +  TV · mean difference of neighbouring pixels
                              +  L2 · mean square of x

The maximum-likelihood inversion of He, Zhang and Lee (ACSAC 2019).

Where we differ: the codec is inside the client, so the projection and a quantiser
(straight-through) are inside the loop; the code's error is relative, so that one TV
weight serves every cut and scale; TV is of absolute differences, which leaves edges
sharp, and begins 300 times as strong: smooth images first, details later. Pixels
are clamped: a sigmoid never reaches black. Many images are solved at once, and each
keeps the restart whose code fits best. It knows the client and no image at all: a
trained decoder also has a prior, so the ladder needs both.
"""

import copy
import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.attacks.base import (
    ATTACKS,
    Budget,
    Kind,
    Progress,
    Reconstruction,
    silent,
)
from lightsplit.attacks.view import ServerView
from lightsplit.seeding import scope

TV_WEIGHT = 0.01
TV_AT_FIRST = 300.0  # times as much, falling to 1 in SETTLED of the steps
SETTLED = 0.7
L2_WEIGHT = 1e-3
LEARNING_RATE = 0.03
ROUNDING = 1e-2  # differences below this count as squares, so that TV is smooth
FLAT_STARTS = (0.0, 0.5)
CHUNK = 256  # images that are solved together


class Effort(NamedTuple):
    """What a budget buys."""

    steps: int
    restarts: int


EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(300, 2),
    "short": Effort(800, 2),
    "full": Effort(2000, 4),
}


@ATTACKS.register("whitebox")
class WhiteBox(Reconstruction):
    """Inversion of the true head and encoder by gradient descent on the image.

    Attributes:
        effort: what it may use; by default what the budget buys.
    """

    name = "whitebox"
    kind: ClassVar[Kind] = "oracle"
    needs = ("client", "image_shape")
    threat_model = "a server that holds the client's true head and encoder, no images"
    cost = "quick: 2 x 300 passes of head and encoder per image; full: 4 x 2,000"

    def __init__(
        self,
        *,
        client: nn.Module,
        image_shape: tuple[int, int, int],
        effort: Effort | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.client = client
        self.image_shape = image_shape
        self.effort = effort or EFFORTS[self.budget]

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return for every code the image, of all restarts, whose code is nearest."""
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        chunks = torch.split(view.codes, CHUNK)
        ticks = _Ticks(progress, len(chunks) * self.effort.restarts * self.effort.steps)
        return torch.cat([self._best(client, chunk, ticks) for chunk in chunks])

    def _best(self, client: nn.Module, codes: Tensor, ticks: "_Ticks") -> Tensor:
        """Return the best of all restarts for each of these codes."""
        best = codes.new_zeros(len(codes), *self.image_shape)
        lowest = codes.new_full((len(codes),), torch.inf)
        for restart in range(self.effort.restarts):
            start = self._start(len(codes), restart)
            images = _descend(client, codes, start, self.effort.steps, ticks)
            with torch.no_grad():
                error = code_error(client(images), codes)
            better = error < lowest
            best[better], lowest[better] = images[better], error[better]
        return best

    def _start(self, count: int, restart: int) -> Tensor:
        """Return where to begin: all black as published, all grey, then noise."""
        if restart < len(FLAT_STARTS):
            return torch.full((count, *self.image_shape), FLAT_STARTS[restart])
        with scope(self.seed, "whitebox", restart):
            return torch.rand(count, *self.image_shape)


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


class _Ticks:
    """Counts the steps of all chunks and restarts for a progress bar."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        self.progress(self.done, self.total)


def _descend(
    client: nn.Module, codes: Tensor, start: Tensor, steps: int, tick: _Ticks
) -> Tensor:
    """Return the images that Adam reaches from ``start``."""
    images = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([images], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        smooth = _tv_weight(step / steps) * total_variation(images)
        small = L2_WEIGHT * images.flatten(1).square().mean(dim=1)
        # A sum, not a mean: each image has its own problem, whatever the batch.
        loss = (code_error(client(images), codes) + smooth + small).sum()
        (images.grad,) = torch.autograd.grad(loss, [images])
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            images.clamp_(0, 1)
        tick()
    return images.detach()


def _tv_weight(done: float) -> float:
    """Return the weight of TV when this share of the steps is done."""
    left = max(0.0, 1 - done / SETTLED)
    return TV_WEIGHT * math.pow(TV_AT_FIRST, left)
