"""A detector: evidence in, a score and a flag for each client out.

    [Evidence, …] ──score──► the higher, the more suspicious ──threshold──► flags

Most detectors compare the clients with each other at the end of a window of rounds,
with one piece of evidence per client. A detector that ``judges_turns`` is called after
every turn instead, with one piece of evidence per recent turn.
``detectors/several.py`` runs several detectors on the same evidence.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from lightsplit.backdoors.evidence import Evidence
from lightsplit.errors import ConfigError
from lightsplit.registry import Registry


class Verdict(NamedTuple):
    """Scores and flags, in the order of the evidence.

    Attributes:
        clients: the client of each score.
        scores: finite numbers; the higher, the more suspicious.
        threshold: a score above it is flagged.
        false_alarm_rate: the share of verdicts on honest clients with any flag, found
            by a bootstrap from the evidence; None if the detector has none.
        detector: the name of the detector.
    """

    clients: tuple[int, ...]
    scores: tuple[float, ...]
    threshold: float
    false_alarm_rate: float | None = None
    detector: str = ""

    @property
    def flags(self) -> tuple[bool, ...]:
        """Whether each score is above the threshold."""
        return tuple(score > self.threshold for score in self.scores)

    @property
    def flagged(self) -> tuple[int, ...]:
        """The flagged clients, in order."""
        pairs = zip(self.clients, self.flags, strict=True)
        return tuple(sorted({client for client, is_flagged in pairs if is_flagged}))


class Detector(ABC):
    """Scores clients by how suspicious their evidence is.

    Args:
        clients: the number of clients.
        threshold: flag scores above it; None for the detector's own threshold.

    Attributes:
        name: the registered name.
        needs: the kinds of evidence it uses.
        judges_turns: whether it is called after every turn, with the recent turns.
        own_threshold: the threshold if the user gives none.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    judges_turns: ClassVar[bool] = False
    own_threshold: ClassVar[float]

    def __init__(self, *, clients: int, threshold: float | None = None) -> None:
        self.clients = clients
        self.threshold = self.own_threshold if threshold is None else threshold

    @classmethod
    def trusted(cls, options: Mapping[str, Any]) -> int | None:
        """Return the client that the detector trusts, given its options; or None."""
        del options
        return None

    @abstractmethod
    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return a score for each piece of evidence."""

    def judge(self, evidence: Sequence[Evidence]) -> Verdict:
        """Return the verdict on the evidence."""
        scores = self.score(evidence)
        if not all(map(math.isfinite, scores)):
            raise ConfigError(f"{self.name} needs finite evidence, got inf or nan")
        clients = tuple(piece.client for piece in evidence)
        return Verdict(clients, tuple(scores), self.threshold, detector=self.name)

    def state(self) -> dict[str, Tensor]:
        """Return the detector's memory between verdicts, for a checkpoint."""
        return {}

    def load(self, state: dict[str, Tensor]) -> None:  # noqa: B027 most have no memory
        """Continue from the memory that ``state`` returned."""


DETECTORS: Registry[Detector] = Registry("detector", "lightsplit.detectors")
