"""Metrics of rows of a table against their originals, both standardised by the task.

    row_mse = mean over values of (x̂ − x)²
    r2      = 1 − Σ (x̂ − x)² / mean over rows of Σ (x − x̄)²

The mean of ``r2`` over rows is the usual R² of the whole table: 1 for a copy, 0 for the
means of the columns, below 0 for worse. ``columns`` has the same for each column alone.
"""

import torch
from torch import Tensor

from lightsplit.metrics.base import checked_rows, scored_as

TABLE = ("table",)


@scored_as("row_mse", higher_is_better=False, span=(0.0, torch.inf), kinds=TABLE)
def row_mean_squared_error(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the mean squared difference of each row to its original."""
    reconstructions, originals = checked_rows(reconstructions, originals)
    return (reconstructions - originals).square().mean(1)


@scored_as(
    "r2",
    higher_is_better=True,
    span=(-torch.inf, 1.0),
    kinds=TABLE,
    needs_all_images=True,
)
def explained_variance(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return each row's part of R², whose mean over rows is R².

    Example:
        >>> rows = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
        >>> explained_variance(rows.mean(0).expand(2, 2), rows).mean()
        tensor(0.)
    """
    reconstructions, originals = checked_rows(reconstructions, originals)
    errors = (reconstructions - originals).square().sum(1)
    spread = (originals - originals.mean(0)).square().sum(1).mean()
    return 1 - errors / spread.clamp_min(1e-12)


def column_r2(reconstructions: Tensor, originals: Tensor) -> float | None:
    """Return R² of some values of every row; None where they are all the same."""
    reconstructions, originals = checked_rows(reconstructions, originals)
    spread = (originals - originals.mean(0)).square().sum()
    if float(spread) == 0:
        return None
    return 1 - float((reconstructions - originals).square().sum() / spread)
