"""White-box inversion: the image whose code, by the true head, is the observed one.

    attempt 1: from black, some steps ───┐  each image keeps the attempt whose code
    attempt 2: from black, twice as many ┼─ fits best; no further attempt when they
    attempt 3: from grey, then noise … ──┘  fit, or twice the steps fit no better

This is the maximum-likelihood inversion of He, Zhang and Lee (ACSAC 2019).

Where we differ: the codec is inside the client, so the projection and a quantiser
(straight-through) are inside the loop. ``image_descent.py`` has the objective. Many
images are solved at once. After the first attempt Adam begins at a rate of 1, far above
the usual: pixels that overshoot are clamped, and the search crosses the flat valleys
behind a projection. (Fashion-MNIST, lightsplit-f, 32 images, 1,000 steps. 8x: SSIM 0.77
at 0.3, 0.84 at 0.6, 0.89 at 1.0. At 32x a rate of 0.3 fits every code, 0.39, and leaves
smoother images than 1.0.) The attack knows the client and no image at all. A trained
decoder has a prior in its place, so the ladder needs both; ``refined_decoder.py`` joins
them.
"""

import copy
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.image_descent import Descent, code_error, descend
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts
from lightsplit.seeding import scope

TV_WEIGHT = 0.01
TV_AT_FIRST = 300.0
FIRST_RATE, RATE = 0.3, 1.0
FLAT_STARTS = (0.0, 0.0, 0.5)
FITS = 1e-4  # a smaller mean error of the codes is as good as none
WORTH_IT = 0.8  # twice the steps must lower the mean error to this share
DOES_NOT_FIT = 1e-2  # with a larger error the image found has another code
CHUNK = 256  # images solved together


class Effort(NamedTuple):
    """The effort of a budget: steps of the first attempt, and of the longest one."""

    steps: int
    most_steps: int


EFFORTS: dict[Budget, Effort] = {
    "quick": Effort(500, 1_000),
    "short": Effort(500, 4_000),
    "full": Effort(1_000, 16_000),
}


@ATTACKS.register("whitebox")
class WhiteBox(Reconstructs):
    """Inversion of the true head and encoder by gradient descent on the image.

    Attributes:
        effort: ``steps`` of the first attempt and ``most_steps`` of the longest; by
            default the budget's.
        lr: the rate that Adam begins with; by default 0.3 in the first attempt and 1
            in all others.
        tv: the weight of TV at the end.
    """

    name = "whitebox"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    needs = ("client", "image_shape")
    threat_model = "a server that holds the client's true head and encoder, no images"
    cost = "quick: up to 1,500 passes of head and encoder per image; full: up to 31,000"
    facts = PartFacts(
        source="after He, Zhang, Lee, ACSAC 2019",
        assumes="the true weights of the head",
        status="adapted",
    )

    def __init__(
        self,
        *,
        client: nn.Module,
        image_shape: tuple[int, int, int],
        steps: int | None = None,
        most_steps: int | None = None,
        lr: float | None = None,
        tv: float = TV_WEIGHT,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps, most_steps=most_steps)
        at_least(self.name, 0, lr=lr, tv=tv)
        self.client = client
        self.image_shape = image_shape
        planned = EFFORTS[self.budget]
        first = steps or planned.steps
        self.effort = Effort(first, max(first, most_steps or planned.most_steps))
        self.lr = lr
        self.tv = tv

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return for every code the image whose code is nearest, of all attempts."""
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        chunks = torch.split(view.codes, CHUNK)
        attempts = self._attempts()
        ticks = _Ticks(progress, len(chunks) * sum(attempts))
        found = []
        for number, chunk in enumerate(chunks, start=1):
            found.append(self._best(client, chunk, attempts, ticks))
            ticks.done = sum(attempts) * number  # an attempt that was not needed
        images, errors = (torch.cat(each) for each in zip(*found, strict=True))
        self._judge(errors)
        return images

    def _attempts(self) -> list[int]:
        """Return the steps of each attempt, doubled from one to the next."""
        counts = [self.effort.steps]
        while counts[-1] * 2 <= self.effort.most_steps:
            counts.append(counts[-1] * 2)
        return counts

    def _best(
        self, client: nn.Module, codes: Tensor, attempts: list[int], ticks: "_Ticks"
    ) -> tuple[Tensor, Tensor]:
        """Return the best image of all attempts for each code, and its code's error."""
        best = codes.new_zeros(len(codes), *self.image_shape)
        lowest = codes.new_full((len(codes),), torch.inf)
        for number, steps in enumerate(attempts):
            before = float(lowest.mean())
            lr = self.lr or (RATE if number else FIRST_RATE)
            descent = Descent(steps, lr, self.tv, TV_AT_FIRST)
            start = self._start(len(codes), number)
            images = descend(client, codes, start, descent, ticks)
            with torch.no_grad():
                error = code_error(client(images), codes)
            better = error < lowest
            best[better], lowest[better] = images[better], error[better]
            after = float(lowest.mean())
            is_useless = number > 1 and after > WORTH_IT * before  # at the same rate
            if after <= FITS or is_useless:
                return best, lowest
        self.converged = False
        return best, lowest

    def _judge(self, errors: Tensor) -> None:
        """Say how well the codes were reproduced, and doubt what does not fit."""
        if self.converged is None:
            self.converged = True
        found = "converged" if self.converged else "not converged"
        self.notes.append(
            f"{found}: relative squared error of the code {float(errors.mean()):.1e} "
            f"on average, {float(errors.max()):.1e} at most"
        )
        misfits = int((errors > DOES_NOT_FIT).sum())
        if misfits:
            self.notes.append(
                f"did not fit: {misfits} of {len(errors)} images found have codes that "
                f"differ by more than {DOES_NOT_FIT:.0%}; they say nothing about the "
                "code"
            )

    def _start(self, count: int, attempt: int) -> Tensor:
        """Return the first images: all black as published, later grey, then noise."""
        if attempt < len(FLAT_STARTS):
            return torch.full((count, *self.image_shape), FLAT_STARTS[attempt])
        with scope(self.seed, "whitebox", attempt):
            return torch.rand(count, *self.image_shape)


class _Ticks:
    """Counts the steps of all chunks and attempts for a progress bar."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        self.progress(self.done, self.total)
