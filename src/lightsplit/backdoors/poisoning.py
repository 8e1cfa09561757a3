"""A malicious client's batches: honest batches with some samples poisoned.

    source.batch(step) ──► rows drawn from (seed, "poison", client, step) ──► planted

No state is kept between steps, so a resumed run is poisoned exactly like an
uninterrupted one.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from lightsplit.backdoors.triggers import Trigger
from lightsplit.errors import ConfigError
from lightsplit.seeding import numpy_generator

LabelledBatches = Iterable[tuple[Tensor, Tensor]]


class Source(Protocol):
    """Batches of one client by step; its length is the number per epoch."""

    def __len__(self) -> int: ...

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return images and labels of ``step``."""
        ...


class PoisonedBatches:
    """The batches of ``source`` with a share of their samples poisoned.

    The share is exact on average: 0.3 of 5 samples is one or two samples. Only samples
    that the trigger applies to are poisoned, so the share may be smaller than asked.
    """

    def __init__(
        self, source: Source, trigger: Trigger, ratio: float, *, seed: int, client: int
    ) -> None:
        if not 0 < ratio <= 1:
            raise ConfigError(f"poison_ratio must be above 0 and up to 1, got {ratio}")
        self.source = source
        self.trigger = trigger
        self.ratio = ratio
        self._names = (seed, "poison", client)

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return images and labels of ``step``, some of them poisoned."""
        images, labels = self.source.batch(step)
        rows = self._rows(labels, step)
        images, labels = images.clone(), labels.clone()
        images[rows], labels[rows] = self.trigger.plant(images[rows], labels[rows])
        return images, labels

    def _rows(self, labels: Tensor, step: int) -> Tensor:
        generator = numpy_generator(*self._names, step)
        count = math.floor(self.ratio * len(labels) + generator.random())
        able = self.trigger.applies_to(labels).nonzero().flatten()
        return able[torch.from_numpy(generator.permutation(len(able)))[:count]]


class Trials:
    """Test batches that measure a backdoor: marked images with the target as label.

    The accuracy on them is the backdoor's success rate. With ``is_marked`` false the
    images have no mark, which gives the rate without the backdoor.
    """

    def __init__(
        self, test: LabelledBatches, trigger: Trigger, *, is_marked: bool = True
    ) -> None:
        self._test = test
        self._trigger = trigger
        self._is_marked = is_marked

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self._test:
            about = self._trigger.applies_to(labels)
            if about.any():
                marked, targets = self._trigger.plant(images[about], labels[about])
                yield (marked if self._is_marked else images[about]), targets
