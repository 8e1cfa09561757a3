"""Scores of guesses about yes or no: was it a member, does it have the property?

    auc                the chance that a yes is scored higher than a no
    balanced_accuracy  the mean of the shares of right guesses among yes and among no
    tpr_at_1_fpr       the share of yes that is found when 1 % of no is called yes too

A mean over all samples hides whom an attacker is sure about, so the last one is shown
beside the others (Carlini et al., 2022). Blind guessing gives 0.5, 0.5 and 0.01.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.seeding import numpy_generator

RESAMPLES = 200
LOW_RATE = 0.01
CHANCES = {"auc": 0.5, "balanced_accuracy": 0.5, "tpr_at_1_fpr": LOW_RATE}


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
        threshold: above which the attacker says yes; by default the median, for an
            attacker who knows that half of the samples are.
        seed: of the bootstrap.
    """
    found, yes = scores.double().numpy(), truth.bool().numpy()
    if len(found) != len(yes) or yes.all() or not yes.any():
        raise AuditError(
            f"expected scores of yes and of no, got {len(found)} scores for "
            f"{int(yes.sum())} yes and {int((~yes).sum())} no"
        )
    at = float(np.median(found)) if threshold is None else threshold
    measures: dict[str, Callable[[NDArray[Any], NDArray[Any]], float]] = {
        "auc": area,
        "balanced_accuracy": lambda s, t: balanced_accuracy(s > at, t),
        "tpr_at_1_fpr": true_positives_at,
    }
    draws = list(_resamples(yes, numpy_generator(seed, "facts")))
    figures = {}
    for name, measure in measures.items():
        values = [measure(found[rows], yes[rows]) for rows in draws]
        low, high = np.quantile(values, [0.025, 0.975])
        figures[name] = {
            "mean": measure(found, yes),
            "low": float(low),
            "high": float(high),
            "chance": CHANCES[name],
        }
    return FactScore(figures, len(found))


def area(scores: NDArray[Any], yes: NDArray[Any]) -> float:
    """Return the AUC by the ranks of yes (Mann and Whitney), ties shared."""
    stats = require("scipy.stats", extra="audit")
    count = int(yes.sum())
    ranks = float(stats.rankdata(scores)[yes].sum())
    return (ranks - count * (count + 1) / 2) / (count * (len(yes) - count))


def balanced_accuracy(said: NDArray[Any], yes: NDArray[Any]) -> float:
    """Return the mean of the right shares of both sides."""
    return float((said[yes].mean() + (~said[~yes]).mean()) / 2)


def true_positives_at(
    scores: NDArray[Any], yes: NDArray[Any], rate: float = LOW_RATE
) -> float:
    """Return the share of yes above a threshold that at most ``rate`` of no pass."""
    no = np.sort(scores[~yes])[::-1]
    threshold = no[int(rate * len(no))]
    return float((scores[yes] > threshold).mean())


def _resamples(yes: NDArray[Any], generator: Any) -> Any:
    """Yield rows drawn with replacement, yes and no apart."""
    sides = [np.flatnonzero(yes), np.flatnonzero(~yes)]
    for _ in range(RESAMPLES):
        yield np.concatenate([generator.choice(side, len(side)) for side in sides])
