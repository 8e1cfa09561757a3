"""A detector: evidence in, a score and a flag for each client out.

    [Evidence, …] ──score──► the higher, the more suspicious ──threshold──► flags

Most detectors compare the clients with each other at the end of a window of rounds, on
one piece of evidence each. One that ``judges_turns`` is asked after every turn instead,
about the last turns, one piece of evidence each. ``detectors/several.py`` has what
holds for several detectors over the same evidence.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from torch import Tensor

from lightsplit.backdoors.evidence import Evidence
from lightsplit.errors import ConfigError
from lightsplit.registry import Registry


class Verdict(NamedTuple):
    """Scores and flags, in the order of the evidence.

    Attributes:
        clients: whom each score is about.
        scores: finite; the higher, the more suspicious.
        threshold: a score above it is flagged.
        false_alarm_rate: of verdicts on honest clients alone, the simulated share with
            any flag; None where nobody has simulated it.
        detector: whose verdict it is.
    """

    clients: tuple[int, ...]
    scores: tuple[float, ...]
    threshold: float
    false_alarm_rate: float | None = None
    detector: str = ""

    @property
    def flags(self) -> tuple[bool, ...]:
        """Say for each score whether it is above the threshold."""
        return tuple(score > self.threshold for score in self.scores)

    @property
    def flagged(self) -> tuple[int, ...]:
        """The clients that are flagged, in order."""
        pairs = zip(self.clients, self.flags, strict=True)
        return tuple(sorted({client for client, is_flagged in pairs if is_flagged}))


class Detector(ABC):
    """Something that tells clients that misbehave from those that do not.

    Args:
        clients: how many take part.
        threshold: flag scores above it; None is the detector's own.

    Attributes:
        name: the registered name.
        needs: which kinds of evidence it looks at.
        judges_turns: whether it is asked after every turn, about the last ones.
        own_threshold: what it flags by unless told otherwise.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    judges_turns: ClassVar[bool] = False
    own_threshold: ClassVar[float]

    def __init__(self, *, clients: int, threshold: float | None = None) -> None:
        self.clients = clients
        self.threshold = self.own_threshold if threshold is None else threshold

    @abstractmethod
    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return a score for each piece of evidence."""

    def judge(self, evidence: Sequence[Evidence]) -> Verdict:
        """Return the verdict on the evidence."""
        scores = self.score(evidence)
        if not all(map(math.isfinite, scores)):
            raise ConfigError(f"{self.name} got evidence that is not finite")
        clients = tuple(piece.client for piece in evidence)
        return Verdict(clients, tuple(scores), self.threshold, detector=self.name)

    def state(self) -> dict[str, Tensor]:
        """Return what the detector remembers between verdicts, for a checkpoint."""
        return {}

    def load(self, state: dict[str, Tensor]) -> None:  # noqa: B027 most remember nothing
        """Go on from what ``state`` returned."""


DETECTORS: Registry[Detector] = Registry("detector")


def make_detector(name: str, *, clients: int, **options: object) -> Detector:
    """Return the detector called ``name``, or say which options are not its own."""
    foreign = sorted(set(options) - option_names(name))
    if foreign:
        raise ConfigError(f"{', '.join(foreign)}: not a setting of detector {name!r}")
    return DETECTORS.create(name, clients=clients, **options)


def option_names(name: str) -> set[str]:
    """Return what the detector called ``name`` can be told."""
    return set(inspect.signature(DETECTORS.get(name)).parameters)
