"""The values of many images, and their summary in one line.

    evaluate(batch) ──► Scores.add ──► Scores.values ──► summarise ──► Summary

A mean alone hides the few images that an attack recovers well, and those matter most
for privacy: ``worst`` is the mean over the best-recovered 1 % of images (at least one).
The interval is over images, not over seeds or trainings: it says how well these images
represent others of their kind, and nothing about another run.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.metrics.base import METRICS, Metric
from lightsplit.seeding import numpy_generator

RESAMPLES = 1000
AT_A_TIME = 100  # resamples drawn at once
WORST_SHARE = 0.01
Z_95 = 1.959964  # the 97.5 % quantile of the standard normal distribution


class Summary(NamedTuple):
    """A metric over images: the mean, its 95 % interval and the worst for privacy."""

    mean: float
    low: float
    high: float
    worst: float
    images: int


class Scores:
    """Values by metric, collected batch by batch."""

    def __init__(self) -> None:
        self._batches: list[dict[str, Tensor]] = []

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Add the values of one batch; every batch must have the same metrics."""
        if self._batches and values.keys() != self._batches[0].keys():
            raise ConfigError(
                f"expected values of {', '.join(self._batches[0])} for every batch, "
                f"got {', '.join(values)}"
            )
        self._batches.append(
            {name: each.detach().cpu() for name, each in values.items()}
        )

    def values(self) -> dict[str, Tensor]:
        """Return the values of all images by metric, in the order of arrival."""
        names = self._batches[0] if self._batches else {}
        return {
            name: torch.cat([each[name] for each in self._batches]) for name in names
        }

    def summaries(self, seed: int = 0) -> dict[str, Summary]:
        """Return one summary for each metric."""
        return {
            name: summarise(values, METRICS.create(name), seed=seed)
            for name, values in self.values().items()
        }


def summarise(values: Tensor, metric: Metric, *, seed: int = 0) -> Summary:
    """Return mean, 95 % confidence interval and worst share of values (N,).

    The interval of a proportion is Wilson's; any other is bootstrapped, between the
    percentiles of resampled means. With fewer than about thirty images it is too
    narrow, and with one image it is that image's value.
    """
    if values.ndim != 1 or len(values) == 0:
        raise ConfigError(
            f"expected one value for each image, got shape {tuple(values.shape)}"
        )
    numbers = values.detach().cpu().double().numpy()
    mean = float(numbers.mean())
    if metric.is_proportion:
        low, high = wilson_interval(mean, len(numbers))
    else:
        low, high = _bootstrap_interval(numbers, seed)
    worst = _best_recovered(numbers, metric.higher_is_better)
    return Summary(mean, low, high, float(worst.mean()), len(numbers))


def wilson_interval(share: float, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share of ``trials``, inside [0, 1].

    Example:
        >>> low, high = wilson_interval(0.0, 10)
        >>> low, round(high, 3)
        (0.0, 0.278)
    """
    spread = Z_95**2 / trials
    centre = share + spread / 2
    half_width = math.sqrt(share * (1 - share) * spread + spread**2 / 4)
    low, high = ((centre + side * half_width) / (1 + spread) for side in (-1, 1))
    return max(0.0, low), min(1.0, high)


def _bootstrap_interval(
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]], seed: int
) -> tuple[float, float]:
    generator = numpy_generator(seed, "bootstrap")
    draws = (AT_A_TIME, len(numbers))
    means = [
        numbers[generator.integers(len(numbers), size=draws)].mean(axis=1)
        for _ in range(RESAMPLES // AT_A_TIME)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _best_recovered(
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]], higher_is_better: bool
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    kept = math.ceil(WORST_SHARE * len(numbers))
    ascending = np.sort(numbers)
    return ascending[-kept:] if higher_is_better else ascending[:kept]
