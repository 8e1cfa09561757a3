"""Scores of inferred labels, and what guessing would have scored.

Every score comes with its chance level, measured with shuffled labels. That level is
often neither 1 / classes nor a half: classes may be unequal, naming clusters by the
truth favours the attacker, and so does max(AUC, 1 − AUC).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.seeding import numpy_generator

SHUFFLES = 20


class LabelScore(NamedTuple):
    """A score of inferred labels, its value by chance, and the number of samples."""

    name: str
    value: float
    chance: float
    samples: int


def matched_accuracy(clusters: Tensor, labels: Tensor, *, seed: int = 0) -> LabelScore:
    """Return the accuracy under the best one-to-one naming of clusters."""
    return _scored("matched_accuracy", _matched, clusters, labels, seed)


def accuracy(guesses: Tensor, labels: Tensor, *, seed: int = 0) -> LabelScore:
    """Return the share of guesses that are right."""
    return _scored("accuracy", _accuracy, guesses, labels, seed)


def hint_accuracy(
    guesses: Tensor, labels: Tensor, *, hints: Tensor, seed: int = 0
) -> LabelScore:
    """Return the accuracy on the rows that are not among ``hints``."""
    unknown = torch.ones(len(labels), dtype=torch.bool)
    unknown[hints] = False
    return accuracy(guesses[unknown], labels[unknown], seed=seed)


def leak_auc(scores: Tensor, labels: Tensor, *, seed: int = 0) -> LabelScore:
    """Return the one-vs-rest AUC, turned to its better side, averaged over classes."""
    return _scored("leak_auc", _leak_auc, scores, labels, seed)


def _scored(
    name: str,
    measure: Callable[[NDArray[Any], NDArray[Any]], float],
    inferred: Tensor,
    labels: Tensor,
    seed: int,
) -> LabelScore:
    """Return the measure, and its mean over shuffled labels."""
    if len(inferred) != len(labels) or len(labels) == 0:
        raise AuditError(
            f"expected a label for each of {len(inferred)} rows, got {len(labels)}"
        )
    found, truth = inferred.numpy(), labels.numpy()
    generator = numpy_generator(seed, "label chance")
    chances = [measure(found, generator.permutation(truth)) for _ in range(SHUFFLES)]
    return LabelScore(name, measure(found, truth), float(np.mean(chances)), len(truth))


def _accuracy(guesses: NDArray[Any], labels: NDArray[Any]) -> float:
    return float((guesses == labels).mean())


def _matched(clusters: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the accuracy with the clusters named so that it is highest."""
    optimize = require("scipy.optimize", extra="audit")
    counts = np.zeros((clusters.max() + 1, labels.max() + 1))
    np.add.at(counts, (clusters, labels), 1)
    rows, columns = optimize.linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / len(labels))


def _leak_auc(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return how well a threshold tells a class from the rest, averaged over classes.

    This is the AUC, by the sum of a class's ranks (Mann and Whitney), ties shared.
    """
    stats = require("scipy.stats", extra="audit")
    classes, members = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise AuditError("expected samples of at least two classes, got one")
    own = np.bincount(members)
    ranks = np.bincount(members, weights=stats.rankdata(scores))
    areas = (ranks - own * (own + 1) / 2) / (own * (len(labels) - own))
    return float(np.maximum(areas, 1 - areas).mean())
