"""Logistic regression between classes; held-out rows choose its strength.

rows with labels ─► standardise ─► regression in several strengths ─► the best one
"""

from typing import Any

import torch
from torch import Tensor

from lightsplit.attacks.decoder_stems import Standardise
from lightsplit.attacks.linear import held_out_split
from lightsplit.errors import AuditError
from lightsplit.extras import require

STRENGTHS = (1e-3, 1e-2, 1e-1)  # inverse regularisation of standardised values
ITERATIONS = 200


class Separator:
    """Tells classes apart by planes between rows that are known.

    Args:
        rows: flat, as float32 (M, …).
        labels: of the rows.
        seed: of the split.
    """

    def __init__(self, rows: Tensor, labels: Tensor, *, seed: int) -> None:
        fitting, held_out = held_out_split(len(rows), seed=seed)
        if len(torch.unique(labels[fitting])) < 2:
            raise AuditError("expected known rows of at least two classes, got one")
        self._standardise = Standardise(rows)
        known = self._standardise(rows).numpy()
        truth = labels.numpy()
        best = max(
            STRENGTHS,
            key=lambda strength: _fitted(
                known[fitting], truth[fitting], strength, seed
            ).score(known[held_out], truth[held_out]),
        )
        self._model = _fitted(known, truth, best, seed)

    def labels_of(self, rows: Tensor) -> Tensor:
        """Return the most likely label of every row."""
        found = self._model.predict(self._standardise(rows).numpy())
        return torch.from_numpy(found).long()

    def scores(self, rows: Tensor) -> Tensor:
        """Return how strongly each row suggests label 1, if labels are 1 and 0."""
        found = self._model.decision_function(self._standardise(rows).numpy())
        return torch.from_numpy(found).float()


def _fitted(rows: Any, labels: Any, strength: float, seed: int) -> Any:
    linear_model = require("sklearn.linear_model", extra="audit")
    return linear_model.LogisticRegression(
        C=strength, max_iter=ITERATIONS, tol=1e-3, random_state=seed
    ).fit(rows, labels)
