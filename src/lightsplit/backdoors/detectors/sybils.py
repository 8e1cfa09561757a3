"""Clients that pull the backbone in the same direction: FoolsGold and CONTRA.

    sum of all gradients of each client ──► cosines ──► pardon ──► trust in [0, 1]

Both look for several clients with one aim (sybils). Neither finds a single malicious
client, because it has no twin: that is their threat model, not a fault here. Trust was
designed to weight updates that are averaged. Turns are sequential and nothing is
averaged, so the score is 1 - trust. CONTRA's reputation selects the clients of the next
round; here every client has its turn, so there is no selection.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.backdoors.evidence import Evidence

_TINY = 1e-5
NEIGHBOURS = 3  # CONTRA's number of nearest clients


class Sybils(Detector):
    """Remembers each client's direction and compares the directions."""

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
        """Return the similarity of each client to others (n,), from cosines (n, n)."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """Return the sums of all gradients so far."""
        return dict(self._history)

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from the sums that ``state`` returned."""
        self._history = dict(state)


@DETECTORS.register("foolsgold")
class FoolsGold(Sybils):
    """Distrusts clients with a very similar other client (Fung et al. 2020)."""

    name: ClassVar[str] = "foolsgold"

    def likeness(self, cosines: Tensor) -> Tensor:
        """Return the cosine to the nearest other client."""
        return cosines.max(1).values + _TINY


@DETECTORS.register("contra")
class Contra(Sybils):
    """Distrusts clients with a few very similar others (Awan et al. 2021)."""

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
    """Shrink the cosine of an honest client that happens to be near a sybil."""
    ratio = likeness[:, None] / likeness[None, :].clamp_min(_TINY)
    return torch.where(likeness[:, None] < likeness[None, :], cosines * ratio, cosines)


def _trust(cosines: Tensor) -> Tensor:
    trust = (1 - cosines.max(1).values).clamp(0, 1)
    if trust.max() < _TINY:  # all clients are alike
        return torch.ones_like(trust)
    share = (trust / trust.max()).clamp(_TINY, 0.99)
    return (torch.logit(share) + 0.5).clamp(0, 1)
