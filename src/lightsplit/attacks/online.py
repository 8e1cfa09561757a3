"""Attacks that train networks of their own beside the victim: their common part.

    exchange ─► a complete step? ─► the server's weights into a copy of its network
                                 ─► one iteration: the step's code, a batch of known
                                    images, random numbers of this iteration

They draw nothing from the generators that the victim uses, and change nothing of the
victim's.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lightsplit import seeding
from lightsplit.attacks.auxiliary import AuxiliaryBatches
from lightsplit.attacks.base import Progress, silent
from lightsplit.attacks.capabilities import (
    TARGETS,
    Guess,
    InfersLabels,
    Observes,
    Reconstructs,
)
from lightsplit.attacks.knowledge import LabelledImages, Setup
from lightsplit.attacks.label_scores import LabelScore
from lightsplit.attacks.learner import Learner, frozen, load_states, states
from lightsplit.attacks.steps import Seen, StepReader
from lightsplit.attacks.view import Exchange, ServerView
from lightsplit.codecs import Code
from lightsplit.errors import AuditError, RunError
from lightsplit.protocol import Wire

_SERVER = "server/"


class TrainedAlongside(Observes, Reconstructs):
    """An attack whose networks do one iteration for every step of the victim.

    Attributes:
        published_iterations: how many the authors' own runs had.
        learners: its networks by name, each with its optimizer.
        codec: as the server knows it.
        server: a frozen copy of the server's network as of the last step.
        iterations: how many it has done.
    """

    published_iterations: ClassVar[int]
    learners: Mapping[str, Learner]

    def __init__(
        self, *, auxiliary: LabelledImages, setup: Setup, **options: Any
    ) -> None:
        super().__init__(**options)
        self.iterations = 0
        with seeding.scope(self.seed, self.name, "server"):
            self.server: nn.Module = frozen(setup.server()).to(setup.device)
        self._batches = AuxiliaryBatches(auxiliary, self.seed, setup.device)
        self.codec = setup.codec()
        self._reader = StepReader(Wire(self.codec, formats=setup.formats))
        self._latest: Seen | None = None

    @abstractmethod
    def learn(self, seen: Seen, known: LabelledImages) -> None:
        """Do one iteration with a batch of the victim's and one of known images."""

    @abstractmethod
    def decode(self, seen: Seen) -> Tensor:
        """Return the images (B, C, H, W) of the victim's codes."""

    def classify(self, code: Code) -> Tensor | None:
        """Return the labels of the victim's codes, or None if it infers none."""
        del code
        return None

    def labels_of(self, batches: Sequence[Code]) -> Sequence[Tensor | None]:
        """Return the labels of the images to reconstruct, where the server has them."""
        return [None] * len(batches)

    def observe(self, exchange: Exchange, weights: Mapping[str, Tensor]) -> None:
        """Do one iteration when a step of training is complete."""
        seen = self._reader.read(exchange)
        if seen is None:
            return
        self.server.load_state_dict(weights)
        with seeding.scope(self.seed, self.name, self.iterations):
            self.learn(seen, self._batches.next(len(seen.code.values)))
        self.iterations += 1
        self._latest = seen

    def guess(self) -> Guess:
        """Return its images and labels of the last step that it has learnt from."""
        if self._latest is None:
            raise AuditError(f"{self.name} has learnt from no step yet")
        return Guess(self.decode(self._latest), self.classify(self._latest.code))

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code."""
        self._note_iterations()
        batches, images = view.coded_batches, []
        for code, labels in zip(batches, self.labels_of(batches), strict=True):
            images.append(self.decode(Seen(code, labels)))
            progress(len(images), len(batches))
        return torch.cat(images)

    def state(self) -> dict[str, Tensor]:
        """Return the networks with their optimizers, and the counts of its progress."""
        return {
            "counts": torch.tensor([self.iterations, self._batches.rows.drawn]),
            **{_SERVER + name: kept for name, kept in self.server.state_dict().items()},
            **states(self.learners),
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the state that ``state()`` of an equal attack returned."""
        if "counts" not in state:
            raise RunError(f"this is not the state of {self.name}: it has no counts")
        load_states(self.learners, state)
        weights = {
            key.removeprefix(_SERVER): kept
            for key, kept in state.items()
            if key.startswith(_SERVER)
        }
        self.server.load_state_dict(weights)
        self.iterations, self._batches.rows.drawn = state["counts"].tolist()

    def _note_iterations(self) -> None:
        if self.iterations < self.published_iterations:
            self.notes.append(
                f"{self.name} learnt from {self.iterations} steps of the published "
                f"{self.published_iterations}: a shortened run can show that an "
                "attack works, but not that a codec holds"
            )


class CopiesTail(TrainedAlongside, InfersLabels):
    """An attack with a tail of its own, which infers labels in the U-shape.

    Attributes:
        classes: how many labels there are.
        is_told: whether the server has the labels anyway, as in the vanilla topology.
    """

    def __init__(
        self,
        *,
        classes: int,
        auxiliary: LabelledImages,
        setup: Setup,
        **options: Any,
    ) -> None:
        super().__init__(auxiliary=auxiliary, setup=setup, **options)
        self.classes = classes
        self.is_told = setup.contract.topology == "vanilla"

    @abstractmethod
    def read_labels(self, code: Code) -> Tensor:
        """Return the labels that the tail gives to the victim's codes."""

    def classify(self, code: Code) -> Tensor | None:
        """Return labels in the U-shape, and None where the server has them."""
        return None if self.is_told else self.read_labels(code)

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the targets in the U-shape; elsewhere the server has their labels."""
        del view
        return () if self.is_told else (TARGETS,)

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return the label that the tail gives to every target."""
        if source not in self.sources(view):
            raise AuditError(
                f"{self.name} infers no labels from {source!r} in this run"
            )
        return torch.cat([self.read_labels(code) for code in view.coded_batches])

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return the share of labels that are right."""
        right = (self.infer(view, source).cpu() == labels).double()
        share = float(right.mean())
        return LabelScore("label_accuracy", share, 1 / self.classes, len(right))
