"""Scores of guesses about yes or no: was it a member, does it have the property?

    auc                the chance that a yes is scored higher than a no
    balanced_accuracy  the mean of the shares of right guesses among yes and among no
    tpr_at_1_fpr       the share of yes that is found when 1 % of no is called yes too

A mean over all samples hides the few about which an attacker is sure, so the last
figure is shown beside the others (Carlini et al., 2022). Blind guessing gives 0.5, 0.5
and, with many samples, 0.01. Of n samples whose answer is no, ⌊n / 100⌋ may be called
yes: with fewer than 100, none. A blind score then finds (⌊n / 100⌋ + 1) / (n + 1) of
yes: 2 % if n is 50.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.seeding import numpy_generator

RESAMPLES = 200
LOW_RATE = 0.01


class FactScore(NamedTuple):
    """Figures by name, each with its 95 % interval and chance, and the samples."""

    figures: dict[str, dict[str, float]]
    samples: int


def fact_score(
    scores: Tensor, truth: Tensor, *, threshold: float | None = None, seed: int = 0
) -> FactScore:
    """Return how well scores tell yes from no.

    Args:
        scores: higher for a likelier yes.
        truth: whether it is one.
        threshold: above which the attacker says yes; by default the attacker knows
            that half of the samples are, and says yes to the half of higher scores.
        seed: of the bootstrap.
    """
    found, yes = scores.double().numpy(), truth.bool().numpy()
    if len(found) != len(yes) or yes.all() or not yes.any():
        raise AuditError(
            f"expected scores of yes and of no, got {len(found)} scores for "
            f"{int(yes.sum())} yes and {int((~yes).sum())} no"
        )
    said = _upper_half(found) if threshold is None else (found > threshold) * 1.0
    measures: dict[str, tuple[Callable[[NDArray[Any]], float], float]] = {
        "auc": (lambda rows: area(found[rows], yes[rows]), 0.5),
        "balanced_accuracy": (
            lambda rows: balanced_accuracy(said[rows], yes[rows]),
            0.5,
        ),
        "tpr_at_1_fpr": (
            lambda rows: true_positives_at(found[rows], yes[rows]),
            blind_true_positives(int((~yes).sum())),
        ),
    }
    everything = np.arange(len(found))
    draws = list(_resamples(yes, numpy_generator(seed, "facts")))
    figures = {}
    for name, (measure, chance) in measures.items():
        low, high = np.quantile([measure(rows) for rows in draws], [0.025, 0.975])
        figures[name] = {
            "mean": measure(everything),
            "low": float(low),
            "high": float(high),
            "chance": chance,
        }
    return FactScore(figures, len(found))


def area(scores: NDArray[Any], yes: NDArray[Any]) -> float:
    """Return the AUC by the ranks of yes (Mann and Whitney), ties shared."""
    stats = require("scipy.stats", extra="audit")
    count = int(yes.sum())
    ranks = float(stats.rankdata(scores)[yes].sum())
    return (ranks - count * (count + 1) / 2) / (count * (len(yes) - count))


def balanced_accuracy(said: NDArray[Any], yes: NDArray[Any]) -> float:
    """Return the mean of the right shares of both sides; ``said`` is 1 for yes."""
    return float((said[yes].mean() + (1 - said[~yes]).mean()) / 2)


def true_positives_at(
    scores: NDArray[Any], yes: NDArray[Any], rate: float = LOW_RATE
) -> float:
    """Return the share of yes above a threshold that at most ``rate`` of no pass."""
    no = np.sort(scores[~yes])[::-1]
    threshold = no[int(rate * len(no))]
    return float((scores[yes] > threshold).mean())


def blind_true_positives(no: int, rate: float = LOW_RATE) -> float:
    """Return the share of yes that a blind score finds among this many no."""
    return (int(rate * no) + 1) / (no + 1)


def _upper_half(scores: NDArray[Any]) -> NDArray[Any]:
    """Return 1 for the half of higher scores; equal ones in the middle share it."""
    middle = np.median(scores)
    said: NDArray[Any] = (scores > middle) * 1.0
    equal = scores == middle
    if equal.any():
        said[equal] = (len(scores) / 2 - said.sum()) / equal.sum()
    return said


def _resamples(yes: NDArray[Any], generator: Any) -> Iterator[NDArray[Any]]:
    """Yield rows drawn with replacement, yes and no apart."""
    sides = [np.flatnonzero(yes), np.flatnonzero(~yes)]
    for _ in range(RESAMPLES):
        yield np.concatenate([generator.choice(side, len(side)) for side in sides])
