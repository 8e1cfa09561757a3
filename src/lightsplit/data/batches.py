"""The batches of one client, by the number of the step.

    step ──► epoch = step // steps_per_epoch, position in it ──► (images, labels)

The order of an epoch is drawn from (seed, "order", client, epoch) and from nothing that
happened before, so that a run which starts again at step 700 sees there what the
uninterrupted run saw.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from lightsplit.data.base import Samples
from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

Batch = tuple[Tensor, Tensor]


class StepBatches(ABC):
    """Batches by step, without an end: after one epoch comes the next."""

    __iter__ = None  # else Python would loop over the steps for ever

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
    one: 65 samples by 64 are 33 and 32, not 64 and a single one, on which BatchNorm
    could not train. (Only an odd number of samples by 2 must leave a single one.)
    """

    def __init__(
        self,
        samples: Samples,
        indices: Tensor | Sequence[int],
        batch_size: int,
        *,
        seed: int,
        client: int,
    ) -> None:
        self.samples = samples
        self.indices = torch.as_tensor(indices, dtype=torch.int64)
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {batch_size}")
        if not len(self.indices):
            raise ConfigError(f"client {client} has no samples")
        self.steps_per_epoch = math.ceil(len(self.indices) / batch_size)
        self._names = (seed, "order", client)
        self._epoch: int | None = None
        self._cuts: Sequence[Tensor] = ()

    def _batch(self, epoch: int, position: int) -> Batch:
        if epoch != self._epoch:
            order = numpy_generator(*self._names, epoch).permutation(len(self.indices))
            shuffled = self.indices[torch.from_numpy(order)]
            self._cuts = torch.tensor_split(shuffled, self.steps_per_epoch)
            self._epoch = epoch
        return self.samples.batch(self._cuts[position])
