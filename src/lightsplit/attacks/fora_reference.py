"""FORA's reference: its decoder, trained on true pairs of code and image.

Nobody can attack like this without a client's help. It shows how much of an image a
decoder of this size finds in a code when it need not guess the client, as FORA must.

Where we differ from the released code: there the decoder learns from the very images
that it reconstructs; here it learns from auxiliary images and their codes, made by the
trained client. Its rate is ten times that of FORA's decoder, as released.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from lightsplit import seeding
from lightsplit.attacks.auxiliary import EndlessRows
from lightsplit.attacks.base import ATTACKS, Budget, Kind, Progress, at_least, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.fora_networks import halvings, make_decoder
from lightsplit.attacks.fora_training import after
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.learner import Learner, descend
from lightsplit.attacks.lifts import learned_lift
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts

LR = 1e-3
STEPS: dict[Budget, int] = {"quick": 200, "short": 2_000, "full": 40_000}
BATCH = 64
CHUNK = 256  # images decoded at a time


@ATTACKS.register("fora-reference")
class ForaReference(Reconstructs):
    """FORA's decoder, trained on true pairs of code and image.

    Attributes:
        steps: of a batch; by default the budget decides.
        lr: Adam's rate.
    """

    name = "fora-reference"
    kind: ClassVar[Kind] = "oracle"
    needs = ("pairs",)
    threat_model = "a server that was given codes with their images by a client"
    cost = "quick: 200 steps, short: 2,000, full: 40,000; batches of 64"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of images of the same kind",
        status="ours",
    )

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError unless the decoder can double features to an image."""
        halvings(activation, image)

    def __init__(
        self, *, pairs: Pairs, steps: int | None = None, lr: float = LR, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, steps=steps)
        at_least(self.name, 0, lr=lr)
        self.pairs = pairs
        self.steps = steps or STEPS[self.budget]
        self.lr = lr

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code."""
        codes, images = self.pairs.codes, self.pairs.images * 2 - 1
        with seeding.scope(self.seed, self.name):
            network = make_decoder(view.codec.shape, tuple(images.shape[1:]))
            decoder = after(learned_lift(view.codec), network).to(codes.device)
            learner = Learner(decoder, self.lr)
            batches = EndlessRows(len(codes), self.seed)
            for step in range(self.steps):
                rows = batches.next(BATCH)
                descend([learner], [mse_loss(decoder(codes[rows]), images[rows])])
                progress(step + 1, self.steps)
        decoder.eval()
        with torch.no_grad():
            decoded = [decoder(rows) for rows in torch.split(view.codes, CHUNK)]
        return torch.cat(decoded) / 2 + 0.5
