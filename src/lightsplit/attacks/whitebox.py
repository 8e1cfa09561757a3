"""White-box inversion: the image whose code, by the true head, is the observed one.

    x = sigmoid(w)      w by Adam on
    ‖client(x) − z̃‖² / ‖z̃‖²  +  TV · mean squared differences of neighbours
                              +  L2 · mean square of x

The maximum-likelihood inversion of He, Zhang and Lee (ACSAC 2019), section 4.1.

Where we differ: the codec is inside the client, so the projection and a quantiser
(straight-through) are inside the loop; the code's error is relative, so that one TV
weight serves every cut and scale; pixels stay in [0, 1] by a sigmoid; many images are
solved at once; and each keeps the restart whose code fits best. It knows the client and
no image at all: a trained decoder also has a prior, so the ladder needs both.
"""

import copy
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

TV_WEIGHT = 0.03
L2_WEIGHT = 1e-3
LEARNING_RATE = 0.1
CHUNK = 256  # images that are solved together


class Effort(NamedTuple):
    """What a budget buys."""

    steps: int
    restarts: int


EFFORTS: dict[Budget, Effort] = {"quick": Effort(300, 2), "full": Effort(2000, 4)}


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
        """Return what the sigmoid is taken of: first all grey, then noise."""
        if restart == 0:
            return torch.zeros(count, *self.image_shape)
        with scope(self.seed, "whitebox", restart):
            return torch.randn(count, *self.image_shape)


def code_error(codes: Tensor, wanted: Tensor) -> Tensor:
    """Return for each row the squared distance over the squared length wanted."""
    distance = (codes - wanted).flatten(1).square().sum(dim=1)
    return distance / wanted.flatten(1).square().sum(dim=1).clamp_min(1e-12)


def total_variation(images: Tensor) -> Tensor:
    """Return for each image the mean squared difference of neighbouring pixels."""
    down = images.diff(dim=-2).square().flatten(1).mean(dim=1)
    across = images.diff(dim=-1).square().flatten(1).mean(dim=1)
    return down + across


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
    weights = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        images = weights.sigmoid()
        smooth = TV_WEIGHT * total_variation(images)
        small = L2_WEIGHT * images.flatten(1).square().mean(dim=1)
        # A sum, not a mean: each image has its own problem, whatever the batch.
        loss = (code_error(client(images), codes) + smooth + small).sum()
        (weights.grad,) = torch.autograd.grad(loss, [weights])
        optimizer.step()
        schedule.step()
        tick()
    return weights.detach().sigmoid()
