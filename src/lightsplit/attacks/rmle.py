"""The white-box inversion of He, Zhang and Lee, as they published it.

"Model inversion attacks against collaborative inference", ACSAC 2019. Regularised
maximum likelihood: from a black image, Adam descends on

    mean (f(x) − z)²  +  TV · mean squared difference of neighbours  +  L2 · mean x²

with AMSGrad, an epsilon of 1e-3, a rate of 1e-2 and 5,000 steps, without bounds on
pixels. TV is 0 for first layers, as released; behind a pooling layer the authors'
weight was 10 or more. ``matching.py`` says what f and z are in each form.

Where we differ: pixels are in [0, 1] and are not normalised; many images are solved at
once, each with its own problem. ``whitebox`` is the same idea with a rate that
converges, bounds, several starts and a relative error.
"""

import copy
from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.inverse_net import EPSILON, HE
from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.matching import FORMS, giving, wanted
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts

STEPS: dict[Budget, int] = {"quick": 500, "short": 2_000, "full": 5_000}
LEARNING_RATE = 1e-2
CHUNK = 256  # images solved together


@ATTACKS.register("rmle")
class RegularisedLikelihood(Reconstructs):
    """The published white-box inversion: Adam from black, at a fixed low rate.

    Attributes:
        steps: of Adam; by default 500 (quick), 2,000 (short) or the published 5,000.
        lr: Adam's rate.
        tv: the weight of the squared differences of neighbouring pixels.
        l2: the weight of the mean square.
    """

    name = "rmle"
    kind: ClassVar[Kind] = "published"
    forms = FORMS
    needs = ("client", "image_shape")
    threat_model = "a server that holds the client's true head and encoder, no images"
    cost = "quick: 500 passes of head and encoder per image, full: 5,000"
    facts = PartFacts(
        source=HE, assumes="the true weights of the head", status="faithful"
    )

    def __init__(
        self,
        *,
        client: ClientCopy,
        image_shape: tuple[int, int, int],
        steps: int | None = None,
        lr: float = LEARNING_RATE,
        tv: float = 0.0,
        l2: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        at_least(self.name, 0, lr=lr, tv=tv, l2=l2)
        self.client = client
        self.image_shape = image_shape
        self.steps = steps or STEPS[self.budget]
        self.lr = lr
        self.tv = tv
        self.l2 = l2
        if self.steps < STEPS["full"]:
            self.notes.append(f"{self.steps:,} of the published 5,000 steps")

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the image that Adam reaches for every code, clipped to [0, 1]."""
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        goals = torch.split(wanted(view.codes, view.codec, self.form), CHUNK)
        images = []
        for number, goal in enumerate(goals):
            images.append(self._descend(client, goal))
            progress(number + 1, len(goals))
        return torch.cat(images)

    def _descend(self, client: ClientCopy, goal: Tensor) -> Tensor:
        given = giving(client, self.form)
        images = goal.new_zeros(len(goal), *self.image_shape).requires_grad_()
        optimizer = torch.optim.Adam([images], lr=self.lr, eps=EPSILON, amsgrad=True)
        for _ in range(self.steps):
            errors = (given(images) - goal).flatten(1).square().mean(dim=1)
            loss = (errors + self._penalty(images)).sum()
            (images.grad,) = torch.autograd.grad(loss, [images])
            optimizer.step()
        return images.detach().clamp(0, 1)

    def _penalty(self, images: Tensor) -> Tensor:
        return self.tv * squared_variation(images) + self.l2 * images.flatten(
            1
        ).square().mean(dim=1)


def squared_variation(images: Tensor) -> Tensor:
    """Return each image's mean squared differences, vertical and horizontal."""
    down, along = images.diff(dim=-2), images.diff(dim=-1)
    return down.flatten(1).square().mean(dim=1) + along.flatten(1).square().mean(dim=1)
