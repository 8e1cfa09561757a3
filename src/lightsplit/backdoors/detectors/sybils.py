"""Clients that pull the backbone the same way again and again: FoolsGold and CONTRA.

    sum of all gradients of each client ──► cosines ──► pardon ──► trust in [0, 1]

Both look for several clients with one aim (sybils). A single malicious client has no
twin and is not found by either: that is their threat model, not a fault here. Trust was
made to weigh updates that are averaged; turns are sequential and nothing is averaged,
so 1 - trust is the score. CONTRA's reputation decides who is invited to the next round,
which does not exist either: every client has its turn.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.backdoors.evidence import Evidence

_TINY = 1e-5
NEIGHBOURS = 3  # of CONTRA


class Sybils(Detector):
    """Remembers where each client has pulled and compares the directions."""

    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})
    own_threshold: ClassVar[float] = 0.5

    def __init__(self, *, clients: int, threshold: float | None = None) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self._history: dict[str, Tensor] = {}

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Add the evidence to the history; return 1 - trust of each client in it."""
        for piece in evidence:
            key = str(piece.client)
            self._history[key] = self._history.get(key, 0) + piece.vector("gradient")
        if len(evidence) < 2:
            return [0.0] * len(evidence)
        rows = torch.stack([self._history[str(piece.client)] for piece in evidence])
        cosines = pairwise_cosines(rows)
        trust = _trust(_pardoned(cosines, self.likeness(cosines)))
        scores: list[float] = (1 - trust).tolist()
        return scores

    def likeness(self, cosines: Tensor) -> Tensor:
        """Return how much each client is like others (n,), from cosines (n, n)."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """Return the sums of all gradients so far."""
        return dict(self._history)

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what ``state`` returned."""
        self._history = dict(state)


@DETECTORS.register("foolsgold")
class FoolsGold(Sybils):
    """Distrusts clients whose nearest other is very near (Fung et al. 2020)."""

    name: ClassVar[str] = "foolsgold"

    def likeness(self, cosines: Tensor) -> Tensor:
        """Return the cosine to the nearest other client."""
        return cosines.max(1).values + _TINY


@DETECTORS.register("contra")
class Contra(Sybils):
    """Distrusts clients whose nearest few are very near (Awan et al. 2021)."""

    name: ClassVar[str] = "contra"

    def likeness(self, cosines: Tensor) -> Tensor:
        """Return the mean cosine to the nearest few clients."""
        count = min(NEIGHBOURS, len(cosines) - 1)
        return cosines.topk(count, dim=1).values.mean(1) + _TINY


def pairwise_cosines(rows: Tensor) -> Tensor:
    """Return the cosines between rows (n, n), 0 on the diagonal and for zero rows."""
    lengths = rows.norm(dim=1, keepdim=True)
    units = torch.where(lengths > 0, rows / lengths.clamp_min(1e-300), 0)
    return (units @ units.T).fill_diagonal_(0)


def _pardoned(cosines: Tensor, likeness: Tensor) -> Tensor:
    """Shrink the cosine of an honest client to a sybil that happens to be near it."""
    ratio = likeness[:, None] / likeness[None, :].clamp_min(_TINY)
    return torch.where(likeness[:, None] < likeness[None, :], cosines * ratio, cosines)


def _trust(cosines: Tensor) -> Tensor:
    trust = (1 - cosines.max(1).values).clamp(0, 1)
    if trust.max() < _TINY:  # all alike: nobody can be told from anybody
        return torch.ones_like(trust)
    share = (trust / trust.max()).clamp(_TINY, 0.99)
    return (torch.logit(share) + 0.5).clamp(0, 1)
