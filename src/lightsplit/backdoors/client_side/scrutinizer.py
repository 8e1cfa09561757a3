"""Gradients Scrutinizer (Fu et al. 2023): do gradients still depend on the classes?

    rows of the code gradient ──► cosines of pairs ─┬─ same label        the task makes
                                                    └─ different labels  these differ

A server that trains the task sends gradients that are more alike within a class than
between classes; a hijacker's are unrelated to the labels. Gap, fit and overlap of the
two kinds of pairs over a window of steps give one score. Nothing is sent for it.

The authors' threshold is 0.5. An honest server's score falls as the task is learned and
as batches get smaller: on the digits it is 0.3 to 0.8 with batches of 32 and 64, and
0.2 to 0.7 with 16, while a hijacker's stays below 0.15. The threshold here is therefore
0.25, for batches of 32 or more.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from lightsplit.backdoors.client_side.base import INSPECTORS, Inspector
from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError

WINDOW = 50  # steps
HONEST = 0.25

Floats = NDArray[np.float64]


class _Pairs(NamedTuple):
    """Means and deviations over the pairs of one step."""

    same: float
    different: float
    same_deviation: float
    different_deviation: float


@INSPECTORS.register("scrutinizer")
class Scrutinizer(Inspector):
    """Compares gradients of the same class with those of different classes."""

    name: ClassVar[str] = "scrutinizer"

    def __init__(self) -> None:
        super().__init__()
        self._window: list[_Pairs] = []

    @classmethod
    def check_codec(cls, codec: Codec) -> None:
        """Refuse a trained lift-back, which changes gradients as a hijacker would."""
        if codec.has_trained_lift:
            raise ConfigError(
                f"the scrutinizer mistakes an honest server with {codec.name} for a "
                "hijacker: use splitguard, or another codec"
            )

    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Add the pairs of a step, and judge at the end of a window."""
        del values
        pairs = _pairs(gradient.detach().flatten(1).double(), labels)
        if pairs is not None:
            self._window.append(pairs)
        if len(self._window) == WINDOW:
            self.score = _score(np.array(self._window))
            self._window = []
            if self.score < HONEST:
                self._alarm(step)


def _pairs(rows: Tensor, labels: Tensor) -> _Pairs | None:
    """Return the similarity of pairs, in [0, 1]; None without pairs of both kinds."""
    units = normalize(rows)
    likeness = 0.5 + 0.5 * units @ units.T
    above = torch.ones_like(likeness, dtype=torch.bool).triu(1)
    is_same = labels[:, None] == labels[None, :]
    same, different = likeness[above & is_same], likeness[above & ~is_same]
    if len(same) < 2 or len(different) < 2:
        return None
    return _Pairs(
        float(same.mean()),
        float(different.mean()),
        float(same.std()),
        float(different.std()),
    )


def _score(window: Floats) -> float:
    same, different, same_deviation, different_deviation = window.mean(axis=0)
    gap = (same - different) / (same + different)
    fit = (_roughness(window[:, 0]) + _roughness(window[:, 1])) / 2
    overlap = _overlap(
        (same - same_deviation, same + same_deviation),
        (different - different_deviation, different + different_deviation),
    )
    size = math.copysign(abs(gap) ** 0.4, gap)
    value = size * -math.log(7 * fit + math.e**-2) * -math.log(overlap + math.e**-1)
    return 1 / (1 + math.exp(-5 * (value - 0.7)))


def _roughness(history: Floats) -> float:
    """Return the root mean square error of the best parabola through the history."""
    steps = np.linspace(-1, 1, len(history))
    fitted = np.polyval(np.polyfit(steps, history, 2), steps)
    return float(np.sqrt(((history - fitted) ** 2).mean()))


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the intersection of two intervals over their union."""
    common = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    whole = max(first[1], second[1]) - min(first[0], second[0])
    return common / whole if whole else 1.0
