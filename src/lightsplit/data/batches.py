"""The batches of one client, by the number of the step.

    step ──► epoch = step // steps_per_epoch, position in it ──► (images, labels)

The order of an epoch is drawn from (seed, "order", client, epoch) and depends on no
earlier event, so a run resumed at step 700 sees the same batch there as the
uninterrupted run.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lightsplit.data.augmentation import Augmentation, augmented
from lightsplit.data.base import SampleSet
from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

Batch = tuple[Any, Any]  # inputs and labels of any nesting


class StepBatches(ABC):
    """Batches by step, without an end: each epoch is followed by the next."""

    __iter__ = None  # otherwise Python would iterate over the steps forever

    steps_per_epoch: int

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __getitem__(self, step: int) -> Batch:
        return self.batch(step)

    def batch(self, step: int) -> Batch:
        """Return the images and labels of ``step``, counted from 0 over all epochs."""
        if step < 0:
            raise ConfigError(f"a step is counted from 0, got {step}")
        return self._batch(*divmod(step, self.steps_per_epoch))

    @abstractmethod
    def _batch(self, epoch: int, position: int) -> Batch: ...


class Batches(StepBatches):
    """Batches of a client's samples, each sample once per epoch.

    An epoch is cut into ceil(n / ``batch_size``) batches whose sizes differ by at most
    one: 65 samples by 64 give 33 and 32, not 64 and 1, because BatchNorm cannot train
    on a single sample. (Only an odd number of samples by 2 leaves a single one.)
    """

    def __init__(
        self,
        samples: SampleSet,
        indices: Tensor | Sequence[int],
        batch_size: int,
        *,
        seed: int,
        client: int,
        augment: Sequence[Augmentation] = (),
    ) -> None:
        self.samples = samples
        self.augment = tuple(augment)
        self.indices = torch.as_tensor(indices, dtype=torch.int64)
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {batch_size}")
        if not len(self.indices):
            raise ConfigError(f"client {client} has no samples")
        self.steps_per_epoch = math.ceil(len(self.indices) / batch_size)
        self._names = (seed, "order", client)
        self._draws = (seed, "augment", client)
        self._epoch: int | None = None
        self._cuts: Sequence[Tensor] = ()

    def rows(self, step: int) -> Tensor:
        """Return the indices of the samples of ``step``."""
        return self.indices[self.numbers(step)]

    def numbers(self, step: int) -> Tensor:
        """Return which of the client's samples ``step`` has, counted from 0."""
        return self._numbers(*divmod(step, self.steps_per_epoch))

    def in_order(self, position: int) -> Tensor:
        """Return the samples of one batch of a pass in order, counted from 0."""
        every = torch.arange(len(self.indices))
        return torch.tensor_split(every, self.steps_per_epoch)[position]

    def numbered(self, numbers: Tensor) -> Batch:
        """Return the samples of these numbers, as they are."""
        return self.samples.batch(self.indices[numbers])

    def _numbers(self, epoch: int, position: int) -> Tensor:
        if epoch != self._epoch:
            order = numpy_generator(*self._names, epoch).permutation(len(self.indices))
            self._cuts = torch.tensor_split(
                torch.from_numpy(order), self.steps_per_epoch
            )
            self._epoch = epoch
        return self._cuts[position]

    def _batch(self, epoch: int, position: int) -> Batch:
        batch = self.numbered(self._numbers(epoch, position))
        if not self.augment:
            return batch
        step = epoch * self.steps_per_epoch + position
        return augmented(self.augment, batch, numpy_generator(*self._draws, step))
