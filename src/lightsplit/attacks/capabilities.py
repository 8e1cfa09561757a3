"""The abilities of attacks. An attack has any combination of them.

    Observes       learns from every exchange while training goes on
    Reconstructs   returns an image for every code that came outside training
    InfersLabels   returns a label for every row of a message, or for every target
    InfersFacts    tells yes from no: a member of the training set, a property

    class Mine(Reconstructs, InfersLabels): …      returns images and labels

Audits, sweeps and ``lightsplit list attacks`` ask for an ability, never for the class
of an attack.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from torch import Tensor

from lightsplit.attacks.base import Attack, Budget, Progress, silent
from lightsplit.attacks.label_scores import LabelScore
from lightsplit.attacks.view import Exchange, ServerView

TARGETS = "targets"  # a source of labels: the codes of the images under attack


class Guess(NamedTuple):
    """An attack's images and labels of one batch; None for those it does not give."""

    images: Tensor | None = None
    labels: Tensor | None = None


class Observes(Attack):
    """An attack that learns while training goes on (``lightsplit audit --during``).

    It sees every exchange of the victim as it happens, with the server's weights of
    that moment, and gives its results when training is over. An audit can save its
    state and load it later: everything it draws depends on its seed and on the number
    of steps it has seen.

    Attributes:
        steps: how many of the last steps of training it learns from, by budget; a
            budget that is missing means all of them. A sweep estimates its cost by this
            number and the measured time of a step.
    """

    steps: ClassVar[Mapping[Budget, int]] = {}

    @abstractmethod
    def observe(self, exchange: Exchange, weights: Mapping[str, Tensor]) -> None:
        """Learn from one exchange; ``weights`` are the server's own, not to be changed.

        They are valid during the call only: an attack that needs them later copies
        them.
        """

    @abstractmethod
    def guess(self) -> Guess:
        """Return its images and labels of the last step that it has learnt from."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return everything that it has learnt, under flat names."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the state that ``state()`` of an equal attack returned."""


class Reconstructs(Attack):
    """An attack that returns images.

    Attributes:
        may_be_negative: whether it cannot tell an image from its negative; the audit
            then scores its images both ways.
    """

    may_be_negative: ClassVar[bool] = False

    @abstractmethod
    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code of ``view.codes`` (N, C, H, W), unclipped.

        For other kinds of truth these are rows (N, F), standardised like the task's, or
        tokens (N, T).
        """


class InfersLabels(Attack):
    """An attack that returns labels."""

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the sources that it infers labels from.

        A source is a kind of message, whose rows are the samples of training steps, or
        TARGETS: the codes of the images under attack.
        """
        return view.recorded_kinds

    @abstractmethod
    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return a label (or a cluster, or a score) for every row of the source."""

    @abstractmethod
    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return how well that fits the true labels, and what chance would give."""


class Suspicion(NamedTuple):
    """An attacker's belief about samples.

    Attributes:
        scores: higher for a likelier yes.
        threshold: scores above it mean yes; None for half of all samples.
        rows: the samples that these are about; None for all.
    """

    scores: Tensor
    threshold: float | None = None
    rows: Tensor | None = None


class InfersFacts(Attack):
    """An attack that tells yes from no for each sample.

    Attributes:
        fact: what it is about; the kind of its entries in a record.
    """

    fact: ClassVar[str]

    @abstractmethod
    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the messages that it reads."""

    @abstractmethod
    def suspect(self, view: ServerView, source: str) -> Suspicion:
        """Return its belief about the samples of a source."""


class InfersMembership(InfersFacts):
    """An attack that tells which samples of a crowd were trained on."""

    fact = "membership"


class InfersProperty(InfersFacts):
    """An attack that tells which of the targets have a property."""

    fact = "property"

    @abstractmethod
    def holds(self, samples: Tensor) -> Tensor:
        """Return whether samples truly have the property; only the audit asks."""


_NAMES: dict[type[Attack], str] = {
    Observes: "observes",
    Reconstructs: "reconstructs",
    InfersLabels: "infers labels",
    InfersMembership: "infers membership",
    InfersProperty: "infers a property",
}


def capabilities(attack: type[Attack]) -> tuple[str, ...]:
    """Return the names of an attack's abilities, as ``lightsplit list`` shows them."""
    return tuple(
        name for ability, name in _NAMES.items() if issubclass(attack, ability)
    )
