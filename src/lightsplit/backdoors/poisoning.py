"""A malicious client's batches: those of an honest one, part of them poisoned.

    source.batch(step) ──► rows drawn from (seed, "poison", client, step) ──► planted

Nothing is remembered from step to step, so a resumed run is poisoned like one that was
never interrupted.
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
    """Batches of one client by step, with how many there are per epoch."""

    def __len__(self) -> int: ...

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return images and labels of ``step``."""
        ...


class PoisonedBatches:
    """The batches of ``source`` with a share of their samples poisoned.

    The share is exact on average: 0.3 of 5 samples are one or two of them. Only samples
    that the trigger is about are taken, so it may come out smaller than asked for.
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
    """Test batches as a backdoor wants them: marked, the target as the right answer.

    Accuracy on them is the backdoor's success. With ``is_marked`` false the same images
    come without the mark: how often they are taken for the target anyhow.
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
