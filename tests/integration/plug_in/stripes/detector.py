"""A detector that suspects the client with the largest codes."""

from collections.abc import Sequence
from typing import ClassVar

from lightsplit.backdoors import Detector
from lightsplit.backdoors.evidence import Evidence


class Loudest(Detector):
    """How much larger a client's mean code is than that of all.

    Args:
        clients: how many take part.
        threshold: flag scores above it.
        gain: multiplies every score.
    """

    name: ClassVar[str] = "loudest"
    needs: ClassVar[frozenset[str]] = frozenset({"code"})
    own_threshold: ClassVar[float] = 1000.0

    def __init__(
        self, *, clients: int, threshold: float | None = None, gain: float = 1.0
    ) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self.gain = gain

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return the norm of each mean code over the mean of these norms."""
        norms = [piece.vector("code").norm().item() for piece in evidence]
        return [self.gain * norm * len(norms) / sum(norms) for norm in norms]
