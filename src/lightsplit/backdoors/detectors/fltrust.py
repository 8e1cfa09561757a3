"""FLTrust (Cao et al. 2021): compare gradients with those of a trusted client.

    gradient of each client ──cos──► gradient of the trusted client

The trusted client holds public data: the server alone cannot compute a reference in
split learning, because it has neither head nor tail. A client whose gradient points
away from the reference (cosine below 0) has no trust in the paper and is flagged here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.backdoors.detectors.sybils import pairwise_cosines
from lightsplit.backdoors.evidence import Evidence


@DETECTORS.register("fltrust")
class FLTrust(Detector):
    """Compares each client's gradient with that of a trusted client with public data.

    Args:
        clients: the number of clients.
        threshold: flag scores above it.
        trusted_client: the client with public data.
    """

    name: ClassVar[str] = "fltrust"
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})
    own_threshold: ClassVar[float] = 1.0

    def __init__(
        self, *, clients: int, threshold: float | None = None, trusted_client: int = 0
    ) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self.trusted_client = trusted_client

    @classmethod
    def trusted(cls, options: Mapping[str, Any]) -> int | None:
        """Return the client with public data."""
        trusted: int = options["trusted_client"]
        return trusted

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return 1 - cosine to the trusted client; all are 0 while it is absent."""
        places = [piece.client for piece in evidence]
        if self.trusted_client not in places:
            return [0.0] * len(evidence)
        reference = places.index(self.trusted_client)
        rows = torch.stack([piece.vector("gradient") for piece in evidence])
        scores = 1 - pairwise_cosines(rows)[reference]
        scores[reference] = 0
        result: list[float] = scores.tolist()
        return result
