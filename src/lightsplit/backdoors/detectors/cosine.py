"""Cosine to consensus with a robust threshold: LightSplit's own detector.

    mean vector of each client ──cos──► consensus ──► |value - median| / MAD > 3 ?

A client with a backdoor sends samples that the others do not have, so its mean leans
away from theirs. So does the mean of a client with skewed labels: the detector sees
that a client is different, never why. ``calibration.py`` says how often it flags honest
clients.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lightsplit.backdoors.detectors.base import DETECTORS, Detector, Verdict
from lightsplit.backdoors.detectors.calibration import HonestScores, check_rate
from lightsplit.backdoors.detectors.cosine_scores import cosine_scores
from lightsplit.backdoors.evidence import Evidence
from lightsplit.errors import ConfigError


class CosineToConsensus(Detector):
    """Compares the mean vector of each client with the consensus of all.

    Args:
        clients: the number of clients.
        threshold: in robust standard deviations; None means 3, the paper's.
        false_alarm_rate: set the threshold at each verdict for this share of false
            alarms among verdicts on honest clients, instead of ``threshold``.
        consensus: the ``mean`` of all (the paper's), or the ``median`` of the others.
        sides: flag ``two`` tails (the paper's), or ``one``: clients unlike the rest.
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
        check_rate(false_alarm_rate)
        super().__init__(clients=clients, threshold=threshold)
        self._wanted_rate = false_alarm_rate
        self._form = {"consensus": consensus, "sides": sides}

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return the robust z-score of each client's cosine."""
        if not evidence:
            return []
        scores = cosine_scores(self._vectors(evidence), **self._form)
        found: list[float] = scores.tolist()
        return found

    def judge(self, evidence: Sequence[Evidence]) -> Verdict:
        """Return the verdict, with the rate of false alarms that the evidence implies.

        Without evidence of noise (nobody has had two steps) there is no rate, and the
        threshold is the detector's own.
        """
        verdict = super().judge(evidence)
        noise = evidence[0].noise.get(self.kind) if evidence else None
        if noise is None:
            return verdict
        honest = HonestScores(
            self._vectors(evidence), noise, list(verdict.clients), **self._form
        )
        threshold = self.threshold
        if self._wanted_rate is not None:
            threshold = honest.threshold_for(self._wanted_rate)
        rate = honest.rate_above(threshold)
        return verdict._replace(threshold=threshold, false_alarm_rate=rate)

    def _vectors(self, evidence: Sequence[Evidence]) -> NDArray[np.float64]:
        vectors: NDArray[np.float64] = torch.stack(
            [piece.vector(self.kind) for piece in evidence]
        ).numpy()
        return vectors


@DETECTORS.register("cosine-code")
class CosineCode(CosineToConsensus):
    """The cosine of the mean code to the consensus, 3 robust sigmas (server input)."""

    name: ClassVar[str] = "cosine-code"
    needs: ClassVar[frozenset[str]] = frozenset({"code", "noise"})
    kind: ClassVar[str] = "code"


@DETECTORS.register("cosine-output")
class CosineOutput(CosineToConsensus):
    """The cosine of the mean output to the consensus, 3 robust sigmas."""

    name: ClassVar[str] = "cosine-output"
    needs: ClassVar[frozenset[str]] = frozenset({"output", "noise"})
    kind: ClassVar[str] = "output"
