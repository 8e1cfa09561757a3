"""An attack that guesses one shade of grey."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks import (
    Kind,
    LabelledImages,
    Progress,
    Reconstructs,
    ServerView,
    silent,
)


class Grey(Reconstructs):
    """The same shade everywhere, as dark as an option says."""

    name = "grey"
    kind: ClassVar[Kind] = "published"
    needs = ("auxiliary",)
    threat_model = "anyone who has seen a stripe"
    cost = "none"

    def __init__(
        self, *, auxiliary: LabelledImages, shade: float = 0.5, **options: Any
    ) -> None:
        super().__init__(**options)
        self.auxiliary = auxiliary
        self.shade = shade

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return grey images with a little noise, so that no two are alike."""
        progress(1, 1)
        image = self.auxiliary.images[0]
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.rand(len(view.codes), *image.shape, generator=generator)
        return (self.shade + noise / 10).to(image)
