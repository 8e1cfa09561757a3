"""FLTrust (Cao et al. 2021): who pulls against a client that is known to be honest?

    gradient of each client ──cos──► gradient of the trusted client

The trusted client holds public data: in split learning the server alone cannot compute
a reference, since it has neither head nor tail. A client whose gradient points away
from the reference (cosine below 0) has no trust in the paper, and is flagged here.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.backdoors.detectors.sybils import pairwise_cosines
from lightsplit.backdoors.evidence import Evidence


@DETECTORS.register("fltrust")
class FLTrust(Detector):
    """Compares each client's pull with that of a trusted one that has public data."""

    name: ClassVar[str] = "fltrust"
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})
    own_threshold: ClassVar[float] = 1.0

    def __init__(
        self, *, clients: int, threshold: float | None = None, trusted: int = 0
    ) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self.trusted = trusted

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return 1 - cosine to the trusted client; 0 for all while it is absent."""
        places = [piece.client for piece in evidence]
        if self.trusted not in places:
            return [0.0] * len(evidence)
        reference = places.index(self.trusted)
        rows = torch.stack([piece.vector("gradient") for piece in evidence])
        scores = 1 - pairwise_cosines(rows)[reference]
        scores[reference] = 0
        result: list[float] = scores.tolist()
        return result
