"""Attacks that invert the gradients of a head's weights: DLG, iDLG, cosine matching.

    dlg                  Zhu, Liu, Han, NeurIPS 2019: image and soft label together,
                         L-BFGS on the squared distance of gradients, 300 steps
    idlg                 Zhao, Mopuri, Bilen, 2020: the label is read off the last
                         layer's gradient, then the image alone
    inverting-gradients  Geiping et al., NeurIPS 2020: cosine distance and TV, Adam on
                         the sign of the gradient, pixels in [0, 1], 4,800 steps

    published   a guess of the image goes through the whole network with a label
    adaptive    the server knows the gradient that it returned for the code: the guess
                goes through head and encoder only, no label is needed

``head_steps.py`` explains who has such gradients in split learning: nobody, unless a
head is shared. All attacks match the gradients of the head's and the encoder's weights.

Where we differ: the network is in evaluation mode, as in the released code of the last;
pixels are in [0, 1]; the image with the lowest cost is kept, so that a diverging search
does not lose its best result. The squared distance is relative to the observed
gradients, so that small ones do not end L-BFGS at its first step.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Budget, at_least
from lightsplit.attacks.gradient_problem import (
    Best,
    InvertsGradients,
    Problem,
    cosine_distance,
    squared_distance,
)
from lightsplit.attacks.image_descent import total_variation
from lightsplit.attacks.matching import ADAPTIVE, FORMS
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts

LBFGS_STEPS: dict[Budget, int] = {"quick": 20, "short": 100, "full": 300}
SIGN_STEPS: dict[Budget, int] = {"quick": 300, "short": 1_200, "full": 4_800}
SIGN_RATE = 0.1
TV_WEIGHT = 1e-4
DROPS = (3 / 8, 5 / 8, 7 / 8)  # of the steps: the rate falls to a tenth


class LbfgsMatching(InvertsGradients):
    """L-BFGS on the squared distance of gradients.

    Attributes:
        steps: of L-BFGS with its 20 iterations each; by default the budget decides.
    """

    cost = "quick: 20 steps of L-BFGS per image, full: 300; seconds to a minute each"

    def __init__(self, *, steps: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        self.steps = steps or LBFGS_STEPS[self.budget]

    def _match(
        self, problem: Problem, image: Tensor, target: Callable[[], Tensor | None]
    ) -> Tensor:
        """Return the image of the lowest cost; ``target`` may change as well."""
        label = target()
        learnt = [image.requires_grad_()]
        if label is not None and label.requires_grad:
            learnt.append(label)
        optimizer = torch.optim.LBFGS(learnt)
        best = Best(image)

        def closure() -> Tensor:
            logits = target()
            soft = logits
            if logits is not None and logits.is_floating_point():
                soft = logits.softmax(dim=1)
            found = problem.gradients(image, soft)
            cost = squared_distance(found, problem.wanted)
            best.see(cost, image)
            slopes = torch.autograd.grad(cost, learnt)
            for tensor, slope in zip(learnt, slopes, strict=True):
                tensor.grad = slope
            return cost.detach()

        for _ in range(self.steps):
            optimizer.step(closure)  # type: ignore[no-untyped-call]
            if not torch.isfinite(image).all():
                break
        return best.image


@ATTACKS.register("dlg")
class DeepLeakage(LbfgsMatching):
    """Image and soft label whose gradients are those of the head."""

    name = "dlg"
    forms = FORMS
    facts = PartFacts(
        source="Zhu, Liu, Han, NeurIPS 2019",
        assumes="a shared head, handed on after a step of one image",
        status="adapted",
    )

    def search(self, problem: Problem, start: Tensor) -> Tensor:
        """Return the image that L-BFGS finds together with its label."""
        if self.form == ADAPTIVE:
            return self._match(problem, start, lambda: None)
        logits = torch.randn(1, self.classes).to(start).requires_grad_()
        return self._match(problem, start, lambda: logits)


@ATTACKS.register("idlg")
class ImprovedDeepLeakage(LbfgsMatching):
    """The label is read off the last layer, and the image is searched alone."""

    name = "idlg"
    facts = PartFacts(
        source="Zhao, Mopuri, Bilen, 2020",
        assumes="a shared head and tail, handed on after a step of one image",
        status="adapted",
    )

    def search(self, problem: Problem, start: Tensor) -> Tensor:
        """Return the image that L-BFGS finds for the label."""
        if problem.label is None:
            raise AuditError("idlg reads the label off a linear tail, and has none")
        label = problem.label
        return self._match(problem, start, lambda: label)


@ATTACKS.register("inverting-gradients")
class InvertingGradients(InvertsGradients):
    """Cosine distance of gradients and TV, by the sign of the slope.

    Attributes:
        steps: of Adam; by default 300 (quick), 1,200 (short) or the published 4,800.
        tv: the weight of the absolute differences of neighbouring pixels.
    """

    name = "inverting-gradients"
    forms = FORMS
    cost = "quick: 300 double passes of the head per image, full: 4,800"
    facts = PartFacts(
        source="Geiping et al., NeurIPS 2020",
        assumes="a shared head, handed on after a step of one image",
        status="adapted",
    )

    def __init__(
        self, *, steps: int | None = None, tv: float = TV_WEIGHT, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        at_least(self.name, 0, tv=tv)
        self.steps = steps or SIGN_STEPS[self.budget]
        self.tv = tv

    def search(self, problem: Problem, start: Tensor) -> Tensor:
        """Return the image of the lowest cost, in [0, 1]."""
        target = None if self.form == ADAPTIVE else problem.label
        if target is None and self.form != ADAPTIVE:
            raise AuditError(
                f"{self.name} as published needs the label of an image, and the tail "
                "does not tell it; use --form adaptive"
            )
        image = start.requires_grad_()
        optimizer = torch.optim.Adam([image], lr=SIGN_RATE)
        drops = [int(share * self.steps) for share in DROPS]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, drops, gamma=0.1)
        best = Best(image)
        for _ in range(self.steps):
            found = problem.gradients(image, target)
            cost = cosine_distance(found, problem.wanted)
            cost = cost + self.tv * total_variation(image).sum()
            best.see(cost, image)
            (slope,) = torch.autograd.grad(cost, [image])
            image.grad = slope.sign()
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                image.clamp_(0, 1)
        return best.image.clamp(0, 1)
