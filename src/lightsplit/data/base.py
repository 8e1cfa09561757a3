"""Labelled images in memory, and the registry of datasets.

    file ──reader──► Samples (uint8) ──batch(indices)──► float32 in [0, 1], labels

Images stay bytes until a batch is requested: CIFAR-10 takes 184 MB this way, not 737.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import ConfigError, DataError
from lightsplit.registry import Registry
from lightsplit.seeding import numpy_generator


@dataclass(frozen=True, eq=False)
class Samples:
    """Images, uint8 (N, C, H, W), and their labels, int64 (N,)."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise DataError(
                "images must be uint8 of shape (N, C, H, W), got "
                f"{self.images.dtype} of shape {tuple(self.images.shape)}"
            )
        if self.labels.dtype != torch.int64 or self.labels.ndim != 1:
            raise DataError(
                "labels must be int64 of shape (N,), got "
                f"{self.labels.dtype} of shape {tuple(self.labels.shape)}"
            )
        if len(self.images) != len(self.labels):
            raise DataError(f"{len(self.images)} images but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of one image."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    def subset(self, indices: Tensor | Sequence[int]) -> "Samples":
        """Return the samples at ``indices``, in that order."""
        rows = torch.as_tensor(indices, dtype=torch.int64)
        return Samples(self.images[rows], self.labels[rows])

    def limit(self, n: int, seed: int) -> "Samples":
        """Return ``n`` random samples in their old order, or all if there are fewer.

        With the same seed, a smaller limit keeps a subset of a larger limit's samples.
        """
        if n < 1:
            raise ConfigError(f"a limit must be at least 1 sample, got {n}")
        return self if n >= len(self) else self.subset(limited_rows(len(self), n, seed))

    def batch(self, indices: Tensor | Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the images at ``indices`` as float32 in [0, 1], and their labels."""
        chosen = self.subset(indices)
        return chosen.images.to(torch.float32) / 255, chosen.labels


class SampleSet(Protocol):
    """Samples that a run can batch, limit and divide between clients."""

    @property
    def labels(self) -> Tensor:
        """The class of every sample; DataError if labels are not classes."""
        ...

    def __len__(self) -> int: ...

    def subset(self, indices: Tensor | Sequence[int]) -> Any:
        """Return the samples at ``indices``, in that order."""
        ...

    def limit(self, n: int, seed: int) -> Any:
        """Return ``n`` random samples in their old order, or all if there are fewer."""
        ...

    def batch(self, indices: Tensor | Sequence[int]) -> tuple[Any, Any]:
        """Return inputs and labels of the samples at ``indices``."""
        ...


@dataclass(frozen=True, eq=False)
class Dataset:
    """A training and a test set.

    Attributes:
        name: name of the task.
        train: samples to train on.
        test: samples to evaluate on.
        classes: labels are 0 … ``classes`` - 1; None if labels are not classes.
    """

    name: str
    train: SampleSet
    test: SampleSet
    classes: int | None

    def __post_init__(self) -> None:
        both = (self.train, self.test)
        if not all(isinstance(one, Samples) for one in both):
            return
        if self.train.shape != self.test.shape:  # type: ignore[attr-defined]
            raise DataError(
                f"{self.name}: training images are {self.train.shape}, "  # type: ignore[attr-defined]
                f"test images {self.test.shape}"  # type: ignore[attr-defined]
            )


def limited_rows(count: int, n: int, seed: int) -> Tensor:
    """Return ``n`` random rows of ``count``, sorted; a smaller ``n`` gives a subset."""
    order = numpy_generator(seed, "limit").permutation(count)
    return torch.from_numpy(np.sort(order[:n]))


DATASETS: Registry[Dataset] = Registry("dataset")


def checked_samples(
    images: np.ndarray[Any, Any],
    labels: np.ndarray[Any, Any],
    *,
    classes: int,
    path: Path,
) -> Samples:
    """Return the samples read from ``path``; refuse wrong ones and name the file.

    Args:
        images: uint8 (N, C, H, W).
        labels: any integers (N,).
        classes: labels must lie in 0 … ``classes`` - 1.
        path: the file that errors name.
    """
    if len(images) != len(labels):
        raise DataError(
            f"{path}: expected one label per image, "
            f"got {len(images)} images and {len(labels)} labels"
        )
    if not len(labels):
        raise DataError(f"{path}: expected at least one sample, got none")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise DataError(
            f"{path}: expected labels from 0 to {classes - 1}, got {low} to {high}"
        )
    return Samples(
        torch.from_numpy(np.array(images, order="C")),
        torch.from_numpy(labels.astype(np.int64)),
    )
