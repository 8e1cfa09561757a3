"""Codes of the same images, one for every time that they were sent.

    pass 0: code of image 0, 1, 2 …  ┐
    pass 1: code of image 0, 1, 2 …  ├─ joined ─► one long code for each image
    pass 2: …                        ┘

A pass counts when the code of every image is there: training may end within one.
"""

from collections.abc import Mapping

import torch
from torch import Tensor


class Releases:
    """The codes of some images, pass by pass.

    Args:
        images: how many there are.
        passes: how many there can be.
    """

    def __init__(self, images: int, passes: int) -> None:
        self.has = torch.zeros(passes, images, dtype=torch.bool)
        self.codes = torch.zeros(passes, images, 0)

    def add(self, number: int, rows: Tensor, codes: Tensor) -> None:
        """Keep the codes of the images ``rows``, as sent in pass ``number``."""
        if not self.has.any():
            self.codes = codes.new_zeros(*self.has.shape, *codes.shape[1:])
        self.codes[number, rows] = codes
        self.has[number, rows] = True

    def whole(self) -> Tensor:
        """Return the numbers of the passes that hold a code of every image."""
        return self.has.all(dim=1).nonzero().flatten()

    def joined(self, passes: Tensor) -> Tensor:
        """Return one code for each image: those of ``passes``, one after the other.

        Codes that are maps are joined along their channels.
        """
        chosen = list(self.codes[passes])
        is_flat = self.codes.ndim < 5
        return torch.cat([one.flatten(1) if is_flat else one for one in chosen], dim=1)

    def state(self, name: str) -> dict[str, Tensor]:
        """Return everything that was added, under flat names."""
        return {f"{name}.has": self.has, f"{name}.codes": self.codes}

    def load(self, name: str, state: Mapping[str, Tensor]) -> None:
        """Load what ``state`` returned."""
        self.has, self.codes = state[f"{name}.has"], state[f"{name}.codes"]
