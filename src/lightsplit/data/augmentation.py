"""Random changes of training images, drawn anew for every step.

    crop   pads an image with zeros and cuts a random window of its old size out of it
    flip   mirrors an image left to right, with probability one half

An augmentation is applied to a client's batches at the client. Its numbers come from
(secret, client, step), so a resumed run and a repeated turn see the same images, and
the server cannot draw them. Test images are never changed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from lightsplit.errors import ConfigError, DataError
from lightsplit.registry import Registry


class Augmentation(ABC):
    """Changes a batch at random."""

    @abstractmethod
    def __call__(
        self, inputs: Any, labels: Any, generator: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return a changed batch; draw all random numbers from ``generator``.

        Args:
            inputs: of a batch; they must not be changed in place.
            labels: of the batch.
            generator: seeded for the client and the step.
        """


AUGMENTATIONS: Registry[Augmentation] = Registry(
    "augmentation", "lightsplit.augmentations"
)


@AUGMENTATIONS.register("crop")
class RandomCrop(Augmentation):
    """Shifts every image at random and fills the border with zeros.

    Args:
        padding: the largest shift in pixels, in each direction.
    """

    def __init__(self, padding: int = 4) -> None:
        if padding < 1:
            raise ConfigError(f"padding of crop must be at least 1, got {padding}")
        self.padding = padding

    def __call__(
        self, inputs: Any, labels: Any, generator: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return every image shifted by its own number of pixels."""
        images = _images("crop", inputs, labels)
        count, _, height, width = images.shape
        drawn = generator.integers(2 * self.padding + 1, size=(2, count, 1))
        top, left = torch.from_numpy(drawn).to(images.device)
        rows = (top + torch.arange(height))[:, None, :, None]
        columns = (left + torch.arange(width))[:, None, None, :]
        sample = torch.arange(count)[:, None, None, None]
        channel = torch.arange(images.shape[1])[None, :, None, None]
        padded = pad(images, [self.padding] * 4)
        return padded[sample, channel, rows, columns], labels


@AUGMENTATIONS.register("flip")
class RandomFlip(Augmentation):
    """Mirrors half of the images left to right."""

    def __call__(
        self, inputs: Any, labels: Any, generator: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return the batch with a random half of its images mirrored."""
        images = _images("flip", inputs, labels)
        is_flipped = torch.from_numpy(generator.integers(2, size=len(images)) == 1)
        chosen = is_flipped.to(images.device)[:, None, None, None]
        return torch.where(chosen, images.flip(-1), images), labels


def augmented(
    augmentations: Sequence[Augmentation],
    batch: tuple[Any, Any],
    generator: np.random.Generator,
) -> tuple[Any, Any]:
    """Return a batch after all augmentations, one after the other."""
    for augmentation in augmentations:
        batch = augmentation(*batch, generator)
    return batch


def _images(name: str, inputs: Any, labels: Any) -> Tensor:
    if not isinstance(inputs, Tensor) or inputs.ndim != 4:
        came = tuple(inputs.shape) if isinstance(inputs, Tensor) else type(inputs)
        raise DataError(
            f"{name} changes images of shape (batch, channels, height, width), "
            f"got {came}; leave it out"
        )
    if isinstance(labels, Tensor) and labels.ndim > 2:
        raise DataError(
            f"{name} changes images and not their masks, got labels of shape "
            f"{tuple(labels.shape)}; augment both in the task's own data"
        )
    return inputs
