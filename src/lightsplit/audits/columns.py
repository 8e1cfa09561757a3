"""How well a table's columns were guessed, each beside what blind guessing gives.

    numbers      typical error in the column's own unit, beside that of its mean
    categories   share of right ones, beside that of the most frequent category

R² joins them: 1 is a copy, 0 the mean of the column, below 0 is worse than that.
"""

from typing import Any

from torch import Tensor

from lightsplit.metrics import column_r2
from lightsplit.truths import Column, TableTruth


def column_figures(
    truth: TableTruth, guesses: Tensor, originals: Tensor
) -> list[dict[str, Any]]:
    """Return the figures of every column, in the table's order."""
    return [
        {
            "column": column.name,
            "r2": column_r2(guesses[:, place], originals[:, place]),
            **_beside_guessing(column, guesses[:, place], originals[:, place]),
        }
        for column, place in truth.places()
    ]


def _beside_guessing(
    column: Column, guesses: Tensor, originals: Tensor
) -> dict[str, float]:
    if column.categories:
        return _categories(guesses, originals)
    mean = originals.mean()
    return {
        "error": _typical(guesses - originals) * column.std,
        "error_of_mean": _typical(originals - mean) * column.std,
    }


def _categories(guesses: Tensor, originals: Tensor) -> dict[str, float]:
    is_known = originals.any(dim=1)  # a missing value has no category
    if not is_known.any():
        return {}
    truth = originals[is_known].argmax(dim=1)
    right = guesses[is_known].argmax(dim=1) == truth
    return {
        "accuracy": float(right.double().mean()),
        "accuracy_of_most_frequent": float(truth.bincount().max() / len(truth)),
    }


def _typical(differences: Tensor) -> float:
    """Return the root of the mean square."""
    return float(differences.double().square().mean().sqrt())
