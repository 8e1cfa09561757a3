"""UnSplit's alternating search, for many images and victims at once.

    x ← 0.5 everywhere
    repeat main_iterations times:
        inner_iterations of x:      MSE(clone(x), row) + 0.1 · variation(x) + mean(x²)
        inner_iterations of clone:  MSE(clone(x), row)
    return the last x

Every image is a problem of its own: its clone, its two optimizers' state and its mean
squared error depend on no other image. The errors are summed, so the gradients do not
mix, and Adam treats every number by itself: P problems in a stack give what P separate
problems give.

The gradients of the errors and of the two terms on x are computed by formulas, not by
autograd. The variation and the mean square are quadratic in x: their gradient is
D·x + x·A with two small matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lightsplit.attacks.base import Progress, silent
from lightsplit.attacks.unsplit_clones import Architecture, Clones, Observed
from lightsplit.errors import AuditError


@dataclass(frozen=True)
class Schedule:
    """How long and how hard to search; the defaults are the released ones."""

    main_iterations: int = 1000
    inner_iterations: int = 100
    lr: float = 1e-3
    variation: float = 0.1
    magnitude: float = 1.0


RELEASED = Schedule()


def invert(
    observed: Sequence[Observed],
    architecture: Architecture,
    *,
    image_shape: tuple[int, int, int],
    schedule: Schedule = RELEASED,
    carry_over: bool = False,
    progress: Progress = silent,
) -> list[Tensor]:
    """Return for each victim the images (N, C, H, W) that UnSplit finds.

    With ``carry_over`` a victim's images are searched one after the other with a single
    clone that keeps its weights, as in the released code; else each has its own clone.
    """
    counts = [len(victim.rows) for victim in observed]
    if not carry_over:
        search = _Search(Clones(observed, architecture), image_shape, schedule)
        found = search.run([victim.rows for victim in observed], progress)
        return list(torch.split(found, counts))
    if len(set(counts)) != 1:
        raise AuditError(
            f"carry_over needs the same number of images of each victim, got {counts}"
        )
    firsts = [Observed(v.rows[:1], v.codec, v.seed) for v in observed]
    search = _Search(Clones(firsts, architecture), image_shape, schedule)
    turns = [
        search.run(
            [v.rows[n : n + 1] for v in observed], _later(progress, n, counts[0])
        )
        for n in range(counts[0])
    ]
    return list(torch.stack(turns, dim=1))


class _Search:
    def __init__(
        self, clones: Clones, image_shape: tuple[int, int, int], schedule: Schedule
    ) -> None:
        self._clones = clones
        self._weights = list(clones.parameters())
        if not self._weights:
            raise AuditError("unsplit clones the head's weights, this head has none")
        self._image_shape = image_shape
        self._schedule = schedule

    def run(self, rows: list[Tensor], progress: Progress) -> Tensor:
        """Return an image for each row; the clones keep their last weights."""
        plan, weights = self._schedule, self._weights
        images = rows[0].new_full((sum(map(len, rows)), *self._image_shape), 0.5)
        pull = _Pull(self._image_shape, plan, like=images)
        on_images, on_clones = _adam([images], plan.lr), _adam(weights, plan.lr)
        for done in range(plan.main_iterations):
            _take_turn([images], resting=weights)
            for _ in range(plan.inner_iterations):
                images.grad = pull.gradient(images)
                self._fit(images, rows)
                on_images.step()
            _take_turn(weights, resting=[images])
            for _ in range(plan.inner_iterations):
                self._fit(images, rows)
                on_clones.step()
                on_clones.zero_grad()
            progress(done + 1, plan.main_iterations)
        return images.detach()

    def _fit(self, images: Tensor, rows: list[Tensor]) -> None:
        """Add the gradients of the rows' mean squared errors to those at hand."""
        outputs = self._clones(images)
        errors = [
            (output.detach() - row).mul_(2 * len(row) / row.numel())
            for output, row in zip(outputs, rows, strict=True)
        ]
        torch.autograd.backward(outputs, errors)


class _Pull:
    """The gradient of the variation and the mean square of an image, as matrices."""

    def __init__(
        self, shape: tuple[int, int, int], plan: Schedule, *, like: Tensor
    ) -> None:
        channels, height, width = shape
        down = plan.variation / max(1, channels * (height - 1) * width)
        along = plan.variation / max(1, channels * height * (width - 1))
        size = plan.magnitude / (channels * height * width)
        self._down = 2 * (down * _differences(height) + size * torch.eye(height)).to(
            like
        )
        self._along = 2 * along * _differences(width).to(like)

    @torch.no_grad()
    def gradient(self, images: Tensor) -> Tensor:
        """Return the gradient for images (P, C, H, W)."""
        return (self._down @ images).add_(images @ self._along)


def _differences(size: int) -> Tensor:
    """Return the matrix of Σ (x[i+1] - x[i])²."""
    steps = torch.eye(size).diff(dim=0)
    return steps.T @ steps


def _adam(tensors: Sequence[Tensor], lr: float) -> torch.optim.Adam:
    return torch.optim.Adam(tensors, lr=lr, amsgrad=True, fused=True)


def _take_turn(learning: Sequence[Tensor], *, resting: Sequence[Tensor]) -> None:
    for tensor in resting:
        tensor.requires_grad_(False)
    for tensor in learning:
        tensor.requires_grad_(True)


def _later(progress: Progress, turn: int, turns: int) -> Progress:
    return lambda done, total: progress(turn * total + done, turns * total)
