"""SafeSplit (Rieger et al. 2025): which of the last backbones belong together?

    backbone before and after a turn ─┬─ change ──2-D DCT──► low frequencies ──► E
                                      └─ angle of every weight, its change   ──► R

E and R are sums of the distances to the nearest half of the other turns. A turn is
benign if it is among the lower half, plus one, of both; a turn that is not is undone by
going back to the newest one that is. By this rule up to half of the turns are set aside
even when everybody is honest: SafeSplit chooses what to go on from, it does not accuse.

The paper leaves open how weights become a matrix and which frequencies are low: here
rows of 128, and the lower quarter each way.
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
    """Sets turns apart whose change of the backbone is unlike the others'."""

    name: ClassVar[str] = "safesplit"
    needs: ClassVar[frozenset[str]] = frozenset({"weights"})
    judges_turns: ClassVar[bool] = True
    own_threshold: ClassVar[float] = 1.0

    def __init__(self, *, clients: int, threshold: float | None = None) -> None:
        super().__init__(clients=clients, threshold=threshold)
        self._known: WeakKeyDictionary[Evidence, tuple[Tensor, Tensor]]
        self._known = WeakKeyDictionary()  # a turn stays in the window for long

    def score(self, evidence: Sequence[Evidence]) -> list[float]:
        """Return each turn's worse rank, in units of what is still benign.

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
    """Return by which part of a full turn each weight's angle has changed."""
    return (_angles(after) - _angles(before)) / (2 * math.pi)


def _weights(piece: Evidence) -> tuple[Tensor, Tensor]:
    if piece.weights is None:
        raise ConfigError(f"no weights were kept of a turn of client {piece.client}")
    return piece.weights


def _angles(weights: Tensor) -> Tensor:
    matrix = _matrix(weights)
    across = matrix * matrix.mean(1, keepdim=True)
    down = matrix * matrix.mean(0, keepdim=True)
    return torch.atan2(down, across).flatten()


def _matrix(weights: Tensor) -> Tensor:
    """Return the weights in rows of ``WIDTH``, the last one filled up with zeros."""
    return pad(weights.double(), (0, -len(weights) % WIDTH)).view(-1, WIDTH)


def _dct(rows: Tensor) -> Tensor:
    """Return the orthonormal DCT-II of each row, by an FFT of the same length."""
    size = rows.shape[1]
    folded = torch.cat([rows[:, ::2], rows[:, 1::2].flip(1)], dim=1)
    phase = -math.pi * torch.arange(size, dtype=torch.float64) / (2 * size)
    waves = torch.fft.fft(folded) * torch.polar(torch.ones_like(phase), phase)
    spectrum: Tensor = waves.real * math.sqrt(2 / size)
    spectrum[:, 0] /= math.sqrt(2)
    return spectrum


def _nearest_distances(points: Tensor, count: int) -> Tensor:
    """Return for each row the sum of its ``count`` smallest distances to others."""
    distances = torch.stack([(points - point).norm(dim=1) for point in points])
    others = distances.fill_diagonal_(math.inf)
    count = min(count, len(points) - 1)
    return others.topk(count, dim=1, largest=False).values.sum(1)


def _ranks(values: Tensor) -> Tensor:
    """Return the rank of each value from 1 on; equal ones share the lower rank."""
    return 1 + (values[None, :] < values[:, None]).sum(1).double()
