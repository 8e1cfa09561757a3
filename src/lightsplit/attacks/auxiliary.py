"""The attacker's own images in batches, pass after pass in a new order.

    pass 0: 3 1 4 0 2 │ pass 1: 2 0 … ─► batches of any size, across the passes

Which images come next depends on the seed and on how many were drawn before.
"""

import torch
from torch import Tensor

from lightsplit.attacks.knowledge import LabelledImages
from lightsplit.errors import AuditError
from lightsplit.seeding import numpy_generator


class AuxiliaryBatches:
    """An endless supply of batches; ``drawn`` images have been given out."""

    def __init__(self, known: LabelledImages, seed: int, device: torch.device) -> None:
        if not len(known.images):
            raise AuditError("the attacker needs auxiliary images, got none")
        self._known = known
        self._seed = seed
        self._device = device
        self._pass = -1
        self._order = torch.empty(0).long()
        self.drawn = 0

    def next(self, count: int) -> LabelledImages:
        """Return the next ``count`` images and their labels."""
        rows = torch.cat(self._rows(count))
        images, labels = self._known.images[rows], self._known.labels[rows]
        return LabelledImages(images.to(self._device), labels.to(self._device))

    def _rows(self, count: int) -> list[Tensor]:
        total, parts = len(self._known.images), []
        while count:
            number, position = divmod(self.drawn, total)
            taken = self._order_of(number)[position : position + count]
            parts.append(taken)
            self.drawn += len(taken)
            count -= len(taken)
        return parts

    def _order_of(self, number: int) -> Tensor:
        if number != self._pass:
            generator = numpy_generator(self._seed, "auxiliary", number)
            order = generator.permutation(len(self._known.images))
            self._pass, self._order = number, torch.from_numpy(order)
        return self._order
