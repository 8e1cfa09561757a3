"""Images: pixels in [0, 1], whatever normalisation the task applies to them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.truths.base import Truth

Scale = float | tuple[float, ...] | None


@dataclass(frozen=True)
class ImageTruth(Truth):
    """Images of one size.

    Attributes:
        size: channels, height and width.
        mean: what the task subtracts from pixels in [0, 1].
        std: what it divides the difference by.
    """

    kind: ClassVar[str] = "image"
    things: ClassVar[str] = "images"
    telling: ClassVar[tuple[str, ...]] = ("ssim", "correlation")

    size: tuple[int, int, int]
    mean: Scale = None
    std: Scale = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels, height and width."""
        return self.size

    def samples(self, inputs: Any) -> Tensor:
        """Return the pixels (N, C, H, W) in [0, 1]."""
        if not isinstance(inputs, Tensor):
            raise ConfigError(f"expected images, got {type(inputs).__name__}")
        if not self._is_normalised:
            return inputs
        return (inputs * self._factor(inputs) + self._offset(inputs)).clamp(0, 1)

    def inputs(self, samples: Tensor) -> Tensor:
        """Return the images as the model takes them."""
        if not self._is_normalised:
            return samples
        return (samples - self._offset(samples)) / self._factor(samples)

    @property
    def _is_normalised(self) -> bool:
        return self.mean is not None or self.std is not None

    def _offset(self, like: Tensor) -> Tensor:
        return _per_channel(0.0 if self.mean is None else self.mean, like)

    def _factor(self, like: Tensor) -> Tensor:
        return _per_channel(1.0 if self.std is None else self.std, like)


def _per_channel(value: float | tuple[float, ...], like: Tensor) -> Tensor:
    return torch.as_tensor(value).to(like).reshape(-1, 1, 1)
