"""An attack: from what a server holds to what the client wanted to keep.

    ServerView ─┐
                ├─► reconstruct ─► images       scored by whoever has the originals
    Knowledge ──┘   infer       ─► labels

An attack cannot reach a client or its data: import-linter keeps this package away from
the runtime, the transports and the readers of data.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from torch import Tensor

from lightsplit.attacks.knowledge import Knowledge
from lightsplit.attacks.label_scores import LabelScore
from lightsplit.attacks.view import Exchange, ServerView
from lightsplit.errors import AuditError
from lightsplit.registry import Registry

Budget = Literal["quick", "short", "full"]
Progress = Callable[[int, int], None]  # steps done, steps in all
Kind = Literal["trivial", "oracle", "published", "labels"]


def silent(_done: int, _total: int) -> None:
    """Report nothing."""


class Attack(ABC):
    """What every attack says of itself.

    Attributes:
        name: the registered name.
        kind: what it is for: a floor, a ceiling, a published attack, or labels.
        forms: ``published`` (lift the code, then the released pipeline) and
            ``adaptive`` (the codec inside the attacker's own model); one without a name
            where there is nothing to choose.
        needs: the fields of Knowledge that its constructor takes, by those names.
        threat_model: who could do this, in a sentence.
        cost: what it takes, in a few words.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    forms: ClassVar[tuple[str, ...]] = ("",)
    needs: ClassVar[tuple[str, ...]] = ()
    threat_model: ClassVar[str]
    cost: ClassVar[str]

    def __init__(
        self, *, form: str = "", budget: Budget = "quick", seed: int = 0
    ) -> None:
        if form not in self.forms:
            known = ", ".join(repr(known) for known in self.forms)
            raise AuditError(f"{self.name} has the forms {known}, got {form!r}")
        self.form = form
        self.budget = budget
        self.seed = seed
        self.notes: list[str] = []  # what a reader of the figures should know

    @classmethod
    def check_shapes(cls, activation: tuple[int, ...], image: tuple[int, ...]) -> None:
        """Raise AuditError where its networks cannot be built for these shapes."""
        del activation, image  # most attacks take any

    @classmethod
    def takes_any_shape(cls) -> bool:
        """Say whether there is nothing that ``check_shapes`` could refuse."""
        return cls.check_shapes.__func__ is Attack.check_shapes.__func__  # type: ignore[attr-defined]


class Reconstruction(Attack):
    """An attack that gives back images.

    Attributes:
        may_be_negative: whether it cannot tell an image from its negative, so that
            what it gives back is scored both ways.
    """

    may_be_negative: ClassVar[bool] = False

    @abstractmethod
    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return an image for every code of ``view.codes`` (N, C, H, W), unclipped."""


class Guess(NamedTuple):
    """Images, and labels where the attack infers them, a row per sample."""

    images: Tensor
    labels: Tensor | None


class OnlineReconstruction(Reconstruction):
    """An attack that learns while training goes on (``lightsplit audit --during``).

    It sees every exchange of the victim when it happens, with the server's weights as
    they are at that moment, and reconstructs when training is over. What it has learnt
    can be kept and taken up again: all that it draws depends on its seed and on how
    many steps it has seen.

    Attributes:
        steps: from how many of the last steps of training it learns; all, if not there.
    """

    steps: ClassVar[Mapping[Budget, int]] = {}

    @abstractmethod
    def observe(self, exchange: Exchange, weights: Mapping[str, Tensor]) -> None:
        """Learn from one exchange; ``weights`` are the server's own, not to be changed.

        They are valid during the call only: whoever needs them later copies them.
        """

    @abstractmethod
    def guess(self) -> Guess:
        """Return what it makes of the last step that it has learnt from."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return everything that it has learnt, under flat names."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over what ``state()`` of an equal attack returned."""

    def infer_labels(self, view: ServerView) -> Tensor | None:
        """Return a label for every code of ``view.codes`` where it infers them."""
        del view
        return None


class LabelInference(Attack):
    """An attack that gives back labels of the samples of training steps."""

    kind: ClassVar[Kind] = "labels"
    chance: ClassVar[str] = "1 / classes"

    @abstractmethod
    def infer(self, view: ServerView, message: str) -> Tensor:
        """Return a label (or a cluster, or a score) for every row of the message."""

    @abstractmethod
    def score(self, view: ServerView, message: str, labels: Tensor) -> LabelScore:
        """Return how well that fits the true labels, and what chance would give."""


A = TypeVar("A", bound=Attack)

ATTACKS: Registry[Attack] = Registry("attack")


def equip(attack: type[A], knowledge: Knowledge, **options: Any) -> A | None:
    """Return the attack with what it needs and no more; None if the run lacks it."""
    known = {name: getattr(knowledge, name) for name in attack.needs}
    if any(value is None for value in known.values()):
        return None
    return attack(**known, **options)
