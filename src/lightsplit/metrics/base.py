"""The interface of a metric, and the checks of its arguments.

    reconstructions (N, C, H, W) ─┐
                                  ├─ metric ──► one value for each image (N,)
    originals (N, C, H, W) ───────┘

Rows of a table are (N, F) and texts (N, T), with metrics of their own.

A metric scores how close a reconstruction is to its original. In an audit close is bad:
``more_private`` is the direction that the owner of the data wants.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.registry import Registry

ScoreFunction = TypeVar("ScoreFunction", bound=Callable[..., Tensor])


@dataclass(frozen=True)
class Metric:
    """A function of two batches of images, and how to read its values.

    Attributes:
        function: takes reconstructions and originals, returns one value per image.
        higher_is_better: whether a higher value is a better reconstruction.
        lowest: the smallest value for images in [0, 1].
        highest: the largest value for images in [0, 1].
        unit: the unit of a value; empty for a bare number.
        is_scale_free: whether brightness and contrast of a reconstruction are ignored.
        is_proportion: whether values are hits and misses, 1 and 0.
        needs_all_images: whether an image's value depends on the other images.
        needs_weights: whether the function takes the folder of LPIPS's weights.
        kinds: of truth that it scores: ``image``, ``table``, ``text``.
    """

    name: str
    function: Callable[..., Tensor]
    higher_is_better: bool
    lowest: float
    highest: float
    unit: str = ""
    is_scale_free: bool = False
    is_proportion: bool = False
    needs_all_images: bool = False
    needs_weights: bool = False
    kinds: tuple[str, ...] = ("image",)

    @property
    def more_private(self) -> Literal["higher", "lower"]:
        """Return the direction in which less of the original is revealed."""
        return "lower" if self.higher_is_better else "higher"

    def __call__(
        self, reconstructions: Tensor, originals: Tensor, *, weights: Path | None = None
    ) -> Tensor:
        """Return one value per image; see ``needs_weights`` for the folder."""
        if not self.needs_weights:
            return self.function(reconstructions, originals)
        if weights is None:
            raise ConfigError(
                f"metric {self.name} needs the folder of the LPIPS weights, got none; "
                'give weights=data_folder(None) / "weights"'
            )
        return self.function(reconstructions, originals, weights=weights)


METRICS: Registry[Metric] = Registry("metric", "lightsplit.metrics")


def scored_as(
    name: str,
    *,
    higher_is_better: bool,
    span: tuple[float, float],
    **facts: str | bool | tuple[str, ...],
) -> Callable[[ScoreFunction], ScoreFunction]:
    """Return a decorator that registers a function as the metric ``name``.

    Args:
        name: its name in tables and on the command line.
        higher_is_better: whether a higher value is a better reconstruction.
        span: the smallest and the largest value for images in [0, 1].
        facts: any other attribute of Metric.
    """

    def enter(function: ScoreFunction) -> ScoreFunction:
        def create() -> Metric:
            return Metric(name, function, higher_is_better, *span, **facts)  # type: ignore[arg-type]

        METRICS.register(name)(create)
        return function

    return enter


def checked_pair(reconstructions: Tensor, originals: Tensor) -> tuple[Tensor, Tensor]:
    """Return both batches of images with one precision and device, or refuse them."""
    _check_shapes("images", "(N, C, H, W)", reconstructions, originals)
    if not (reconstructions.is_floating_point() and originals.is_floating_point()):
        raise ConfigError(
            "expected images as floating-point numbers in [0, 1], "
            f"got {reconstructions.dtype} and {originals.dtype}"
        )
    return _promoted(reconstructions, originals)


def checked_rows(reconstructions: Tensor, originals: Tensor) -> tuple[Tensor, Tensor]:
    """Return both batches of rows with one precision and device, or refuse them."""
    _check_shapes("rows", "(N, F)", reconstructions, originals)
    return _promoted(reconstructions, originals)


def checked_tokens(reconstructions: Tensor, originals: Tensor) -> tuple[Tensor, Tensor]:
    """Return both batches of tokens on one device, or refuse them."""
    _check_shapes("texts", "(N, T)", reconstructions, originals)
    if reconstructions.is_floating_point() or originals.is_floating_point():
        raise ConfigError(
            "expected tokens as whole numbers, "
            f"got {reconstructions.dtype} and {originals.dtype}"
        )
    return reconstructions.to(originals), originals


def _check_shapes(
    things: str, form: str, reconstructions: Tensor, originals: Tensor
) -> None:
    is_one_shape = reconstructions.shape == originals.shape
    if originals.ndim != form.count(",") + 1 or not is_one_shape:
        raise ConfigError(
            f"expected reconstructions and originals of one shape {form}, "
            f"got {tuple(reconstructions.shape)} and {tuple(originals.shape)}"
        )
    if originals.numel() == 0:
        raise ConfigError(f"expected {things}, got none: {tuple(originals.shape)}")


def _promoted(reconstructions: Tensor, originals: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(reconstructions.dtype, originals.dtype)
    originals = originals.to(torch.promote_types(dtype, torch.float32))
    return reconstructions.to(originals), originals
