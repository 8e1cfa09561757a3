"""SDAR: a copy of the client, taught by the server's own network while it trains.

Zhu et al., "Passive inference attacks on split learning via adversarial
regularization", NDSS 2025.

    published   all networks see the code as the server's decoder lifts it: R z̃
    adaptive    decoder and discriminator see the code itself, and each learns a lift
                of its own, which starts as R

In both forms the simulator ends in the codec, as the client does. Without a codec the
two forms are the same. In the U-shape no network is told labels, some of the known
labels are wrong on purpose, and a simulated tail infers the victim's labels. In the
vanilla topology the server has the labels of the images that it reconstructs, and all
networks are told them.

Where we differ from the released code: auxiliary images are shuffled as a whole; the
victim's loss is a mean and its Adam has epsilon 1e-8; images are reconstructed from
codes that the head makes in evaluation mode. A learned encoder is the client's secret,
so the simulator learns one of its own; the paper gave the attacker the victim's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks.base import ATTACKS, Budget, Kind, at_least
from lightsplit.attacks.knowledge import LabelledImages, Setup
from lightsplit.attacks.online import CopiesTail
from lightsplit.attacks.sdar_networks import Cut, make_cut
from lightsplit.attacks.sdar_training import Adversary, Copies, Settings, flip
from lightsplit.attacks.steps import Seen
from lightsplit.codecs import Code
from lightsplit.errors import AuditError
from lightsplit.formats import AsReceived
from lightsplit.part_facts import PartFacts
from lightsplit.protocol import Contract

RELEASED = Settings()


@ATTACKS.register("sdar")
class SDAR(CopiesTail):
    """Trains a copy of the client through the server's network, then a decoder."""

    name = "sdar"
    kind: ClassVar[Kind] = "published"
    forms = ("published", "adaptive")
    needs = ("classes", "auxiliary", "architecture", "setup", "sent_labels")
    steps: ClassVar[Mapping[Budget, int]] = {"quick": 200, "short": 2_000}
    published_iterations = 20_000
    threat_model = "a server with labelled images that knows the head's layers"
    cost = "an iteration per step; 0.35 TFLOP each on ResNet-20 with batches of 128"
    facts = PartFacts(
        source="Zhu et al., NDSS 2025",
        assumes="labelled images of the same kind, and the head's layers",
        status="faithful",
    )

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError unless the decoder can double an activation to an image."""
        make_cut(activation, image)

    def __init__(
        self,
        *,
        classes: int,
        auxiliary: LabelledImages,
        architecture: Callable[[], nn.Module],
        setup: Setup,
        sent_labels: Tensor,
        settings: Settings = RELEASED,
        **options: Any,
    ) -> None:
        super().__init__(auxiliary=auxiliary, setup=setup, classes=classes, **options)
        at_least(self.name, 0, **asdict(settings))
        at_least(self.name, 8, width=settings.width)
        self._settings = settings
        self._sent_labels = sent_labels.to(setup.device)
        with seeding.scope(self.seed, "sdar", "networks"):
            copies = Copies(
                head=architecture(),
                tail=None if self.is_told else setup.tail(),
                server=self.server,
                codec=self.codec,
                received=AsReceived(setup.formats, codec=self.codec),
            )
            self._adversary = Adversary(
                copies,
                self._cut(setup.contract, auxiliary.images.shape[1:]),
                settings=settings,
                learns_lift=self.form == "adaptive",
                device=setup.device,
            )
        self.learners = self._adversary.learners
        if self.form == "adaptive" and not self._adversary.has_lift:
            self.notes.append("there is nothing to lift: both forms are the same")

    def learn(self, seen: Seen, known: LabelledImages) -> None:
        """Do one iteration; in the U-shape some of the known labels are made wrong."""
        if not self.is_told:
            labels = flip(known.labels, self._settings.flip_rate, self.classes)
            known = LabelledImages(known.images, labels)
        self._adversary.learn(seen, known)

    def decode(self, seen: Seen) -> Tensor:
        """Return the images of the victim's codes."""
        return self._adversary.decode(seen)

    def read_labels(self, code: Code) -> Tensor:
        """Return the labels that the simulated tail gives."""
        return self._adversary.classify(code)

    def labels_of(self, batches: Sequence[Code]) -> Sequence[Tensor | None]:
        """Return the labels that were sent with these images, None in the U-shape."""
        if not self.is_told:
            return super().labels_of(batches)
        counts = [len(code.values) for code in batches]
        if len(self._sent_labels) != sum(counts):
            raise AuditError(
                f"sdar needs the label of each of {sum(counts)} images, as the server "
                f"of a vanilla run has them; got {len(self._sent_labels)}"
            )
        return torch.split(self._sent_labels, counts)

    def _cut(self, contract: Contract, image: torch.Size) -> Cut:
        classes = self.classes if self.is_told else 0
        cut = make_cut(contract.activation_shape, tuple(image), classes=classes)
        is_theirs = contract.model == "resnet20"
        level = int(contract.cut) if is_theirs else cut.level
        return cut._replace(level=level, width=self._settings.width)
