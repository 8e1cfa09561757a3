"""Cosine to consensus with a robust threshold: LightSplit's own detector.

    mean vector of each client ──cos──► consensus ──► |value - median| / MAD > 3 ?

A client with a backdoor sends samples that the others do not have; its mean leans away
from theirs. So does that of a client whose labels are skewed: the detector sees that
somebody is different, never why.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch

from lightsplit.backdoors.detectors.base import DETECTORS, Detector, Verdict
from lightsplit.backdoors.detectors.calibration import (
    cosine_scores,
    false_alarm_rate,
    threshold_for,
)
from lightsplit.backdoors.evidence import Evidence
from lightsplit.errors import ConfigError


class CosineToConsensus(Detector):
    """Compares the mean vectors of the clients with what they have in common.

    Args:
        clients: how many take part.
        threshold: in robust standard deviations; None is 3, the paper's.
        false_alarm_rate: set the threshold so that so many verdicts on honest clients
            flag somebody; instead of ``threshold``.
        consensus: the ``mean`` of all (the paper's), or the ``median`` of the others.
        sides: flag ``two`` tails (the paper's), or ``one``: who is less like the rest.
    """

    own_threshold: ClassVar[float] = 3.0
    kind: ClassVar[str]

    def __init__(
        self,
        *,
        clients: int,
        threshold: float | None = None,
        false_alarm_rate: float | None = None,
        consensus: Literal["mean", "median"] = "mean",
        sides: Literal["one", "two"] = "two",
    ) -> None:
        if None not in (threshold, false_alarm_rate):
            raise ConfigError("give a threshold or a false_alarm_rate, not both")
        self._form = {"consensus": consensus, "sides": sides}
        if false_alarm_rate is not None:
            threshold = threshold_for(false_alarm_rate, clients=clients, **self._form)
        super().__init__(clients=clients, threshold=threshold)

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return the robust z-score of each client's cosine."""
        if not evidence:
            return []
        vectors = torch.stack([piece.vector(self.kind) for piece in evidence])
        scores: list[float] = cosine_scores(vectors.numpy(), **self._form).tolist()
        return scores

    def judge(self, evidence: Sequence[Evidence]) -> Verdict:
        """Return the verdict, with the simulated rate of false alarms."""
        rate = false_alarm_rate(self.threshold, clients=self.clients, **self._form)
        return super().judge(evidence)._replace(false_alarm_rate=rate)


@DETECTORS.register("cosine-code")
class CosineCode(CosineToConsensus):
    """The mean code's cosine to the consensus, 3 robust sigmas (server input)."""

    name: ClassVar[str] = "cosine-code"
    needs: ClassVar[frozenset[str]] = frozenset({"code"})
    kind: ClassVar[str] = "code"


@DETECTORS.register("cosine-output")
class CosineOutput(CosineToConsensus):
    """The mean output's cosine to the consensus, 3 robust sigmas (server output)."""

    name: ClassVar[str] = "cosine-output"
    needs: ClassVar[frozenset[str]] = frozenset({"output"})
    kind: ClassVar[str] = "output"
