"""SDAR: a copy of the client, taught by the server's own network while it trains.

Zhu et al., "Passive inference attacks on split learning via adversarial
regularization", NDSS 2025.

    published   all networks see what the server's decoder makes of a code: R z̃
    adaptive    decoder and discriminator see the code itself, and each learns a lift
                of its own, which starts as R

In both the simulator ends in the codec, as the client does. Without a codec the two
forms are the same. In the U-shape nothing is told labels, the known labels are partly
wrong on purpose, and a simulated tail infers the victim's. In the vanilla topology the
server has the labels of the images that it reconstructs, and all networks are told.

Where we differ from the released code: auxiliary images are shuffled as a whole; the
victim's loss is a mean and its Adam has epsilon 1e-8; images are reconstructed from
codes that the head makes in evaluation mode. A learned encoder is the client's secret,
so the simulator learns one of its own; the paper gave the attacker the victim's.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks.auxiliary import AuxiliaryBatches
from lightsplit.attacks.base import (
    ATTACKS,
    Budget,
    Guess,
    Kind,
    OnlineReconstruction,
    Progress,
    silent,
)
from lightsplit.attacks.knowledge import LabelledImages, Setup
from lightsplit.attacks.learner import load_states, states
from lightsplit.attacks.sdar_networks import Cut, make_cut
from lightsplit.attacks.sdar_training import Adversary, Copies, Settings, flip
from lightsplit.attacks.steps import Seen, StepReader
from lightsplit.attacks.view import Exchange, ServerView
from lightsplit.codecs import Code
from lightsplit.errors import AuditError
from lightsplit.protocol import Contract

PUBLISHED_STEPS = 20_000
RELEASED = Settings()


@ATTACKS.register("sdar")
class SDAR(OnlineReconstruction):
    """Trains a copy of the client through the server's network, then a decoder."""

    name = "sdar"
    kind: ClassVar[Kind] = "published"
    forms = ("published", "adaptive")
    needs = ("classes", "auxiliary", "architecture", "setup", "sent_labels")
    steps: ClassVar[Mapping[Budget, int]] = {"quick": 200, "short": 2_000}
    threat_model = (
        "a server with labelled images of the kind that knows the head's layers"
    )
    cost = (
        "as many iterations as there are steps; 0.35 TFLOP each on ResNet-20, batch 128"
    )

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
        super().__init__(**options)
        self.iterations = 0
        self._classes = classes
        self._settings = settings
        self._is_told = setup.contract.topology == "vanilla"
        self._sent_labels = sent_labels.to(setup.device)
        self._batches = AuxiliaryBatches(auxiliary, self.seed, setup.device)
        self._reader = StepReader()
        self._latest: Seen | None = None
        with seeding.scope(self.seed, "sdar", "networks"):
            copies = Copies(
                head=architecture(),
                tail=None if self._is_told else setup.tail(),
                server=setup.server(),
                codec=setup.codec(),
            )
            self._adversary = Adversary(
                copies,
                self._cut(setup.contract, auxiliary.images.shape[1:]),
                settings=settings,
                learns_lift=self.form == "adaptive",
                device=setup.device,
            )
        if self.form == "adaptive" and not self._adversary.has_lift:
            self.notes.append("there is nothing to lift: both forms are the same")

    def observe(self, exchange: Exchange, weights: Mapping[str, Tensor]) -> None:
        """Do one iteration when a step of training is complete."""
        seen = self._reader.read(exchange)
        if seen is None:
            return
        self._adversary.server.load_state_dict(weights)
        with seeding.scope(self.seed, "sdar", self.iterations):
            self._adversary.learn(seen, self._known(len(seen.code.values)))
        self.iterations += 1
        self._latest = seen

    def guess(self) -> Guess:
        """Return images, and in the U-shape labels, of the last step's batch."""
        if self._latest is None:
            raise AuditError("sdar has seen no step yet")
        entrance = self._adversary.entrance(self._latest.code).detach()
        images = self._adversary.decode(entrance, self._latest.labels)
        if self._is_told:
            return Guess(images, None)
        return Guess(images, self._adversary.classify(self._latest.code))

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code."""
        self._note_iterations()
        batches = view.coded_batches
        labels = self._labels_of(batches)
        images = []
        for done, (code, told) in enumerate(zip(batches, labels, strict=True), start=1):
            entrance = self._adversary.entrance(code).detach()
            images.append(self._adversary.decode(entrance, told))
            progress(done, len(batches))
        return torch.cat(images)

    def infer_labels(self, view: ServerView) -> Tensor | None:
        """Return a label for every code in the U-shape: elsewhere they are known."""
        if self._is_told:
            return None
        return torch.cat([self._adversary.classify(c) for c in view.coded_batches])

    def state(self) -> dict[str, Tensor]:
        """Return the networks with their optimizers, and how far it has come."""
        counts = torch.tensor([self.iterations, self._batches.drawn])
        server = self._adversary.server.state_dict()
        return {
            "counts": counts,
            **{f"server/{name}": tensor for name, tensor in server.items()},
            **states(self._adversary.learners),
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over what ``state()`` of an equal attack returned."""
        load_states(self._adversary.learners, state)
        weights = {k[7:]: v for k, v in state.items() if k.startswith("server/")}
        self._adversary.server.load_state_dict(weights)
        self.iterations, self._batches.drawn = state["counts"].tolist()

    def _known(self, count: int) -> LabelledImages:
        """Return a batch of known images, some labels wrong where none are seen."""
        known = self._batches.next(count)
        if self._is_told:
            return known
        labels = flip(known.labels, self._settings.flip_rate, self._classes)
        return LabelledImages(known.images, labels)

    def _labels_of(self, batches: list[Code]) -> Sequence[Tensor | None]:
        """Return the labels that were sent with these images, None in the U-shape."""
        if not self._is_told:
            return [None] * len(batches)
        counts = [len(code.values) for code in batches]
        if len(self._sent_labels) != sum(counts):
            raise AuditError(
                f"sdar needs the label of each of {sum(counts)} images, as the server "
                f"of a vanilla run has them; got {len(self._sent_labels)}"
            )
        return torch.split(self._sent_labels, counts)

    def _cut(self, contract: Contract, image: torch.Size) -> Cut:
        classes = self._classes if self._is_told else 0
        cut = make_cut(contract.activation_shape, tuple(image), classes=classes)
        is_theirs = contract.model == "resnet20"
        return cut._replace(level=int(contract.cut)) if is_theirs else cut

    def _note_iterations(self) -> None:
        if self.iterations < PUBLISHED_STEPS:
            self.notes.append(
                f"sdar learnt from {self.iterations} steps, {PUBLISHED_STEPS} were "
                "published; before some 2,000 it is hardly better than the mean image "
                "and cannot rank codecs"
            )
