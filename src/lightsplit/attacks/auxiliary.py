"""The attacker's own images in batches, in a new order on every pass.

    pass 0: 3 1 4 0 2 │ pass 1: 2 0 … ─► batches of any size, across the passes

The seed and the number of images drawn so far decide which images come next.
"""

import torch
from torch import Tensor

from lightsplit.attacks.knowledge import LabelledImages
from lightsplit.errors import AuditError
from lightsplit.seeding import numpy_generator


class EndlessRows:
    """Row numbers without an end, each row once per pass.

    Attributes:
        drawn: how many rows were returned so far.
    """

    def __init__(self, total: int, seed: int) -> None:
        if total < 1:
            raise AuditError("the attacker needs auxiliary images, got none")
        self._total = total
        self._seed = seed
        self._pass = -1
        self._order = torch.empty(0).long()
        self.drawn = 0

    def next(self, count: int) -> Tensor:
        """Return the next ``count`` rows."""
        parts = []
        while count:
            number, position = divmod(self.drawn, self._total)
            taken = self._order_of(number)[position : position + count]
            parts.append(taken)
            self.drawn += len(taken)
            count -= len(taken)
        return torch.cat(parts)

    def _order_of(self, number: int) -> Tensor:
        if number != self._pass:
            generator = numpy_generator(self._seed, "auxiliary", number)
            self._order = torch.from_numpy(generator.permutation(self._total))
            self._pass = number
        return self._order


class AuxiliaryBatches:
    """Endless batches of known images on a device."""

    def __init__(self, known: LabelledImages, seed: int, device: torch.device) -> None:
        self.rows = EndlessRows(len(known.images), seed)
        self._known = known
        self._device = device

    def next(self, count: int) -> LabelledImages:
        """Return the next ``count`` images and their labels."""
        rows = self.rows.next(count)
        images, labels = self._known.images[rows], self._known.labels[rows]
        return LabelledImages(images.to(self._device), labels.to(self._device))
