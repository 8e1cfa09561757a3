"""Ginver: a generator that learns from the head alone, without a single image.

Yin et al., "Ginver: generative model inversion attacks against collaborative
inference", WWW 2023.

    codes that the server got ─► generator ─► images ─► the true head ─► codes again
                                                        loss: both codes are equal

The generator learns to invert the head from codes, and a server has plenty: those under
attack and those of all recorded training steps. Afterwards one pass inverts any code.
``matching.py`` says what each form compares.

Where we differ: the paper's generator and its prior were not available to us. The
generator is the inverse network of He et al. with a sigmoid, and TV is the prior. The
head's gradients are exact (the paper's white-box setting); the paper also estimates
them by queries, which costs more and cannot achieve more.
"""

import copy
from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.auxiliary import EndlessRows
from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.image_descent import code_error, total_variation
from lightsplit.attacks.inverse_net import inverted
from lightsplit.attacks.inverse_networks import CodeInverter, doublings
from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.attacks.matching import ADAPTIVE, FORMS, giving, wanted
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts
from lightsplit.seeding import scope

STEPS: dict[Budget, int] = {"quick": 1_000, "short": 4_000, "full": 16_000}
BATCH = 32
LEARNING_RATE = 1e-3
TV_WEIGHT = 0.01
MESSAGE = "code"


@ATTACKS.register("ginver")
class Ginver(Reconstructs):
    """A generator from codes to images, taught by the true head alone.

    Attributes:
        steps: of a batch of 32 codes; by default the budget decides.
        lr: Adam's first rate, which falls to zero.
        tv: the weight of the absolute differences of neighbouring pixels.
    """

    name = "ginver"
    kind: ClassVar[Kind] = "published"
    forms = FORMS
    needs = ("client", "image_shape")
    threat_model = "a server that holds the client's true head and encoder, no images"
    cost = "quick: 1,000 steps of generator and head, full: 16,000"
    facts = PartFacts(
        source="Yin et al., WWW 2023",
        assumes="the true weights of the head, and many codes",
        status="adapted",
    )

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError unless transposed convolutions lead to an image."""
        doublings(cls.name, activation, image)

    def __init__(
        self,
        *,
        client: ClientCopy,
        image_shape: tuple[int, int, int],
        steps: int | None = None,
        lr: float = LEARNING_RATE,
        tv: float = TV_WEIGHT,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        at_least(self.name, 0, lr=lr, tv=tv)
        self.client = client
        self.image_shape = image_shape
        self.steps = steps or STEPS[self.budget]
        self.lr = lr
        self.tv = tv

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the generator's image for every code."""
        codes = _all_codes(view)
        with scope(self.seed, self.name):
            generator = CodeInverter(
                self.name,
                view.codec,
                self.image_shape,
                learns_lift=self.form == ADAPTIVE,
            ).to(codes.device)
            self._train(
                generator, codes, wanted(codes, view.codec, self.form), progress
            )
        self.notes.append(f"learnt from {len(codes):,} codes")
        return inverted(generator, view.codes).sigmoid()

    def _train(
        self, generator: CodeInverter, codes: Tensor, goals: Tensor, progress: Progress
    ) -> None:
        client = copy.deepcopy(self.client).eval().requires_grad_(False)
        given = giving(client, self.form)
        optimizer = torch.optim.Adam(generator.parameters(), lr=self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        batches = EndlessRows(len(codes), self.seed)
        for step in range(self.steps):
            rows = batches.next(min(BATCH, len(codes)))
            images = generator(codes[rows]).sigmoid()
            errors = code_error(given(images), goals[rows])
            loss = (errors + self.tv * total_variation(images)).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            progress(step + 1, self.steps)


def _all_codes(view: ServerView) -> Tensor:
    """Return the codes under attack and those of the recorded training steps."""
    if MESSAGE not in view.recorded_kinds:
        return view.codes
    return torch.cat([view.codes, view.training_messages(MESSAGE)])
