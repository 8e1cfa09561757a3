"""FORA: a substitute of the client whose features look like the victim's.

Xu et al., "A stealthy wrongdoer: feature-oriented reconstruction attack against split
learning", CVPR 2024.

    published   substitute ─► activation, made like R z̃     the codec is the victim's
    adaptive    substitute ─► codec ─► code, made like z̃    the codec is in the contract

It uses no labels, no gradients and not the head's architecture, so the two topologies
are the same to it. The authors compare it with a decoder: fora_reference.py.

The released code stops at its first iteration with an error. Where we differ from it:
images reach the victim in [0, 1], and only FORA's own networks see [-1, 1]; images are
reconstructed after training, not scored batch by batch.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from torch import Tensor

from lightsplit import seeding
from lightsplit.attacks.base import ATTACKS, Budget, Kind, at_least
from lightsplit.attacks.fora_networks import halvings
from lightsplit.attacks.fora_training import Imitation, Settings
from lightsplit.attacks.knowledge import LabelledImages, Setup
from lightsplit.attacks.online import TrainedAlongside
from lightsplit.attacks.steps import Seen
from lightsplit.formats import AsReceived
from lightsplit.part_facts import PartFacts

RELEASED = Settings()


@ATTACKS.register("fora")
class FORA(TrainedAlongside):
    """Trains a substitute client by the distribution of features, then a decoder."""

    name = "fora"
    kind: ClassVar[Kind] = "published"
    forms = ("published", "adaptive")
    needs = ("auxiliary", "setup")
    steps: ClassVar[Mapping[Budget, int]] = {"quick": 200, "short": 2_000}
    published_iterations = 40_000
    may_be_negative = True
    threat_model = "a server with unlabelled images of the victim's kind"
    cost = "an iteration per step; 0.3 TFLOP each on MobileNet with batches of 64"
    facts = PartFacts(
        source="Xu et al., CVPR 2024",
        assumes="images of the same kind, without labels",
        status="faithful",
    )

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError unless the decoder can double features to an image."""
        halvings(activation, image)

    def __init__(
        self,
        *,
        auxiliary: LabelledImages,
        setup: Setup,
        settings: Settings = RELEASED,
        **options: Any,
    ) -> None:
        super().__init__(auxiliary=auxiliary, setup=setup, **options)
        at_least(self.name, 0, **asdict(settings))
        at_least(self.name, 8, width=settings.width)
        with seeding.scope(self.seed, "fora", "networks"):
            self._imitation = Imitation(
                self.codec,
                AsReceived(setup.formats, codec=self.codec),
                image=auxiliary.images.shape[1:],
                settings=settings,
                works_on_codes=self.form == "adaptive",
                device=setup.device,
            )
        self.learners = self._imitation.learners
        if self.form == "adaptive" and not self._imitation.has_lift:
            self.notes.append("there is nothing to lift: both forms are the same")

    def learn(self, seen: Seen, known: LabelledImages) -> None:
        """Do one iteration."""
        features = self._imitation.entrance(seen.code, self.server)
        self._imitation.learn(features, known.images)

    def decode(self, seen: Seen) -> Tensor:
        """Return the images of the victim's codes."""
        return self._imitation.decode(self._imitation.entrance(seen.code, self.server))
