"""SafeSplit (Rieger et al. 2025): find the recent backbones that belong together.

    backbone before and after a turn ─┬─ change ──2-D DCT──► low frequencies ──► E
                                      └─ angle of every weight, its change   ──► R

E and R are sums of the distances to the nearest half of the other turns. A turn is
benign if it is among the lower half, plus one, of both. If the last turn is not benign,
the server returns to the newest benign turn. By this rule up to half of the turns are
undone even if everybody is honest: SafeSplit chooses a turn to continue from, it
accuses nobody.

The paper does not say how weights become a matrix and which frequencies are low: here
they form rows of 128, and the lower quarter in each direction is kept.
"""

import math
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import pad

from lightsplit.backdoors.detectors.base import DETECTORS, Detector
from lightsplit.backdoors.evidence import Evidence
from lightsplit.errors import ConfigError

WIDTH = 128
LOW = 0.25


@DETECTORS.register("safesplit")
class SafeSplit(Detector):
    """Flags turns whose change of the backbone is unlike the others'."""

    name: ClassVar[str] = "safesplit"
    needs: ClassVar[frozenset[str]] = frozenset({"weights"})
    judges_turns: ClassVar[bool] = True
    own_threshold: ClassVar[float] = 1.0

    def __init__(self, *, clients: int, threshold: float | None = None) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self._known: WeakKeyDictionary[Evidence, tuple[Tensor, Tensor]]
        self._known = WeakKeyDictionary()  # features of turns still in the window

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return each turn's worse rank, relative to the last benign rank.

        All are 0 until there are as many turns as clients.
        """
        count = len(evidence)
        if count < self.clients or count < 3:
            return [0.0] * count
        changes, turns = zip(*map(self._features, evidence), strict=True)
        nearest = count // 2 + 1
        ranks = torch.maximum(
            _ranks(_nearest_distances(torch.stack(changes), nearest)),
            _ranks(_nearest_distances(torch.stack(turns), nearest)),
        )
        scores: list[float] = (ranks / nearest).tolist()
        return scores

    def _features(self, piece: Evidence) -> tuple[Tensor, Tensor]:
        if piece not in self._known:
            before, after = _weights(piece)
            change = low_frequencies(after - before)
            self._known[piece] = (change, rotation(before, after))
        return self._known[piece]


def low_frequencies(weights: Tensor) -> Tensor:
    """Return the low part of the 2-D DCT of a weight vector, flat."""
    matrix = _matrix(weights)
    spectrum = _dct(_dct(matrix).T).T
    rows, columns = (math.ceil(LOW * size) for size in matrix.shape)
    return spectrum[:rows, :columns].flatten()


def rotation(before: Tensor, after: Tensor) -> Tensor:
    """Return each weight's change of angle, as a fraction of a full turn."""
    return (_angles(after) - _angles(before)) / (2 * math.pi)


def _weights(piece: Evidence) -> tuple[Tensor, Tensor]:
    if piece.weights is None:
        raise ConfigError(f"a turn of client {piece.client} has no weights as evidence")
    return piece.weights


def _angles(weights: Tensor) -> Tensor:
    matrix = _matrix(weights)
    across = matrix * matrix.mean(1, keepdim=True)
    down = matrix * matrix.mean(0, keepdim=True)
    return torch.atan2(down, across).flatten()


def _matrix(weights: Tensor) -> Tensor:
    """Return the weights in rows of ``WIDTH``, the last row padded with zeros."""
    return pad(weights.double(), (0, -len(weights) % WIDTH)).view(-1, WIDTH)


def _dct(rows: Tensor) -> Tensor:
    """Return the orthonormal DCT-II of each row, computed by an FFT."""
    size = rows.shape[1]
    folded = torch.cat([rows[:, ::2], rows[:, 1::2].flip(1)], dim=1)
    phase = -math.pi * torch.arange(size, dtype=torch.float64) / (2 * size)
    waves = torch.fft.fft(folded) * torch.polar(torch.ones_like(phase), phase)
    spectrum: Tensor = waves.real * math.sqrt(2 / size)
    spectrum[:, 0] /= math.sqrt(2)
    return spectrum


def _nearest_distances(points: Tensor, count: int) -> Tensor:
    """Return the sum of each row's ``count`` smallest distances to others."""
    distances = torch.stack([(points - point).norm(dim=1) for point in points])
    others = distances.fill_diagonal_(math.inf)
    count = min(count, len(points) - 1)
    return others.topk(count, dim=1, largest=False).values.sum(1)


def _ranks(values: Tensor) -> Tensor:
    """Return the rank of each value, counted from 1; ties share the lower rank."""
    return 1 + (values[None, :] < values[:, None]).sum(1).double()
