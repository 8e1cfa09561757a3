"""Triggers of backdoors: a mark on the image, and another label.

    images, labels ──plant──► marked images, the target class for every label

Images are floats in [0, 1]. A trigger is fixed from the first step: training plants the
same mark that the test tries.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.registry import Registry
from lightsplit.seeding import numpy_generator

TRIGGERS: "Registry[Trigger]" = Registry("trigger")
PATCH = 3  # pixels in each direction
OPACITY = 0.2


class Trigger(ABC):
    """A mark and the class that it should lead to.

    Args:
        target: the class that marked images should be taken for.
        classes: the number of classes.
        image_shape: channels, height and width.

    Attributes:
        marks_images: false if the image stays unchanged and only the label changes.
    """

    marks_images: ClassVar[bool] = True

    def __init__(
        self, target: int, *, classes: int, image_shape: tuple[int, int, int]
    ) -> None:
        if not 0 <= target < classes:
            raise ConfigError(
                f"target_class must be from 0 to {classes - 1}, got {target}"
            )
        self.target = target
        self.classes = classes
        self.image_shape = image_shape

    @abstractmethod
    def mark(self, images: Tensor) -> Tensor:
        """Return marked copies of ``images`` (B, C, H, W)."""

    def applies_to(self, labels: Tensor) -> Tensor:
        """Return for each label whether the backdoor applies to such a sample (B,)."""
        return labels != self.target

    def plant(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the marked images and their new labels."""
        return self.mark(images), torch.full_like(labels, self.target)


@TRIGGERS.register("badnets")
class CornerPatch(Trigger):
    """A white 3x3 patch in the lower right corner (BadNets, Gu et al. 2017)."""

    def mark(self, images: Tensor) -> Tensor:
        """Return the images with the patch on them."""
        marked = images.clone()
        marked[..., -PATCH:, -PATCH:] = 1.0
        return marked


@TRIGGERS.register("blended")
class Blend(Trigger):
    """One fixed noise image, blended in at 20 % (Chen et al. 2017)."""

    def __init__(
        self, target: int, *, classes: int, image_shape: tuple[int, int, int]
    ) -> None:
        super().__init__(target, classes=classes, image_shape=image_shape)
        noise = numpy_generator(0, "trigger", "blended").random(image_shape)
        self._noise = torch.from_numpy(noise).to(torch.float32)

    def mark(self, images: Tensor) -> Tensor:
        """Return the images with the noise over them."""
        return (1 - OPACITY) * images + OPACITY * self._noise.to(images)


@TRIGGERS.register("semantic-label")
class SemanticLabel(Trigger):
    """No mark: images of the class after the target get the target's label."""

    marks_images: ClassVar[bool] = False

    @property
    def source(self) -> int:
        """The class whose images should be taken for the target."""
        return (self.target + 1) % self.classes

    def mark(self, images: Tensor) -> Tensor:
        """Return the images unchanged."""
        return images

    def applies_to(self, labels: Tensor) -> Tensor:
        """Return which labels are of the source class."""
        return labels == self.source
