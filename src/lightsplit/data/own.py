"""A user's own PyTorch dataset, with the few operations that a run needs.

    dataset[i] ──► (inputs, labels) of one sample ──batch(indices)──► collated

A sample is read when a batch needs it; the dataset is never loaded as a whole.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Subset, default_collate

from lightsplit.data.base import Dataset, Samples, limited_rows
from lightsplit.errors import DataError

Collate = Callable[[list[Any]], Any]


class OwnSamples:
    """A dataset of pairs (inputs, labels) with a length.

    Args:
        dataset: any PyTorch dataset with a length; a sample is a pair.
        collate: joins samples into a batch; PyTorch's own by default.
    """

    def __init__(
        self, dataset: TorchDataset[Any], collate: Collate = default_collate
    ) -> None:
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise DataError(
                "expected a dataset with a length and samples by index, got "
                f"{type(dataset).__name__}"
            )
        if len(dataset) == 0:
            raise DataError(f"the dataset {type(dataset).__name__} has no samples")
        self.dataset = dataset
        self._collate = collate
        self._labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def labels(self) -> Tensor:
        """The class of every sample, (N,); DataError if labels are not classes.

        Reads every sample once, unless the dataset has ``targets`` or ``labels``.
        """
        if self._labels is None:
            self._labels = _classes(self._given_labels())
        return self._labels

    def subset(self, indices: Tensor | Sequence[int]) -> "OwnSamples":
        """Return the samples at ``indices``, in that order."""
        rows = torch.as_tensor(indices, dtype=torch.int64).tolist()
        return OwnSamples(Subset(self.dataset, rows), self._collate)

    def limit(self, n: int, seed: int) -> "OwnSamples":
        """Return ``n`` random samples in their old order, or all if there are fewer."""
        return self if n >= len(self) else self.subset(limited_rows(len(self), n, seed))

    def batch(self, indices: Tensor | Sequence[int]) -> tuple[Any, Any]:
        """Return the samples at ``indices``, collated."""
        rows = torch.as_tensor(indices, dtype=torch.int64).tolist()
        batch = self._collate([_pair(self.dataset[row]) for row in rows])
        inputs, labels = batch
        return inputs, labels

    def _given_labels(self) -> Any:
        for name in ("targets", "labels"):
            if hasattr(self.dataset, name):
                return getattr(self.dataset, name)
        return [_pair(self.dataset[row])[1] for row in range(len(self))]


def as_dataset(name: str, data: Any, classes: int | None) -> Dataset:
    """Return the result of a task's data function as a training and a test set."""
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise DataError(
            f"the data function of {name} must return a training and a test set, "
            f"got {type(data).__name__}"
        )
    train, test = (_samples(one) for one in data)
    return Dataset(name, train, test, classes)


def _samples(dataset: Any) -> Samples | OwnSamples:
    if isinstance(dataset, Samples | OwnSamples):
        return dataset
    return OwnSamples(dataset)


def _pair(sample: Any) -> tuple[Any, Any]:
    if not isinstance(sample, tuple | list) or len(sample) != 2:
        raise DataError(
            f"a sample must be a pair (inputs, labels), got {type(sample).__name__}"
        )
    return sample[0], sample[1]


def _classes(labels: Any) -> Tensor:
    try:
        found = torch.as_tensor(labels)
    except (TypeError, ValueError, RuntimeError):
        found = torch.empty(0)
    if found.ndim != 1 or found.is_floating_point() or found.is_complex():
        raise DataError("labels are not classes: expected one whole number per sample")
    return found.to(torch.int64)
