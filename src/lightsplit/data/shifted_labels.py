"""Samples whose labels were replaced, once and for all.

    label of sample i ──► (label + shift i) mod classes

The inputs are those of the samples themselves. A shift needs no label to be drawn, so
the labels of a large dataset are not read in advance.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightsplit.data.base import SampleSet, limited_rows
from lightsplit.errors import DataError


class ShiftedLabels:
    """Samples with shifted labels.

    Args:
        samples: whose inputs and labels are meant.
        shifts: of each sample's label, in classes (N,).
        classes: how many there are.
    """

    def __init__(self, samples: SampleSet, shifts: Tensor, classes: int) -> None:
        self._samples = samples
        self._shifts = shifts
        self._classes = classes

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def labels(self) -> Tensor:
        """The shifted class of every sample."""
        return self._shifted(self._samples.labels, self._shifts)

    def subset(self, indices: Tensor | Sequence[int]) -> "ShiftedLabels":
        """Return the samples at ``indices``, in that order."""
        rows = torch.as_tensor(indices, dtype=torch.int64)
        return ShiftedLabels(
            self._samples.subset(rows), self._shifts[rows], self._classes
        )

    def limit(self, n: int, seed: int) -> "ShiftedLabels":
        """Return ``n`` random samples in their old order, or all if there are fewer."""
        return self if n >= len(self) else self.subset(limited_rows(len(self), n, seed))

    def batch(self, indices: Tensor | Sequence[int]) -> tuple[Any, Any]:
        """Return inputs and shifted labels of the samples at ``indices``."""
        rows = torch.as_tensor(indices, dtype=torch.int64)
        inputs, labels = self._samples.batch(rows)
        return inputs, self._shifted(labels, self._shifts[rows])

    def _shifted(self, labels: Any, shifts: Tensor) -> Tensor:
        is_class = isinstance(labels, Tensor) and labels.shape == shifts.shape
        if not isinstance(labels, Tensor) or not is_class:
            raise DataError("labels are not classes: expected one number per sample")
        whole = labels.to(torch.int64)
        if not torch.equal(whole.to(labels), labels):
            raise DataError("labels are not classes: expected whole numbers")
        return ((whole + shifts) % self._classes).to(labels.dtype)
