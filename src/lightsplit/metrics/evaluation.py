"""All metrics of a set of reconstructions at once.

Reconstructions may lie outside [0, 1]. They are clipped first (``clip=True``), because
an attacker knows the range of an image, and clipping never moves a value away from
the original. ``clip=False`` scores them unclipped, as the authors of UnSplit did for
MNIST; an attack that overshoots then looks weaker than it is. Correlation and
scaled_mse ignore brightness and contrast and always take the values unclipped.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.metrics.base import (
    METRICS,
    Metric,
    checked_pair,
    checked_rows,
    checked_tokens,
)

CHUNK = 256  # images per call, for metrics that score each image on its own


class _Checked(NamedTuple):
    """Both batches, and the reconstructions within the range that an attacker knows."""

    reconstructions: Tensor
    originals: Tensor
    clipped: Tensor


@torch.no_grad()
def evaluate(
    reconstructions: Tensor,
    originals: Tensor,
    *,
    metrics: Sequence[str] | None = None,
    clip: bool = True,
    weights: Path | None = None,
    kind: str = "image",
) -> dict[str, Tensor]:
    """Return the values (N,) of each metric by name.

    Args:
        reconstructions: (N, C, H, W), finite; rows are (N, F), texts (N, T).
        originals: the same shape; images in [0, 1].
        metrics: names in METRICS; by default all of this kind, LPIPS's only if
            ``weights`` is given.
        clip: whether images are clipped to [0, 1] before they are scored.
        weights: the folder of LPIPS's weights.
        kind: of truth: ``image``, ``table`` or ``text``.

    Example:
        >>> originals = torch.rand(8, 3, 32, 32)
        >>> values = evaluate(originals / 2, originals, metrics=["psnr", "correlation"])
        >>> values["correlation"]
        tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    names = metrics or _default_names(kind, weights)
    checked = _CHECKS[kind](reconstructions, originals)
    values = {}
    for metric in map(METRICS.create, names):
        is_free = metric.is_scale_free or not clip
        guesses = checked.reconstructions if is_free else checked.clipped
        values[metric.name] = _in_chunks(metric, guesses, checked.originals, weights)
    return values


def _default_names(kind: str, weights: Path | None) -> list[str]:
    every = [METRICS.create(name) for name in METRICS.names()]
    of_kind = [metric for metric in every if kind in metric.kinds]
    return [m.name for m in of_kind if weights is not None or not m.needs_weights]


def _images(reconstructions: Tensor, originals: Tensor) -> _Checked:
    guesses, truths = checked_pair(reconstructions, originals)
    _check_range(truths)
    _check_finite(guesses)
    return _Checked(guesses, truths, guesses.clamp(0, 1))


def _rows(reconstructions: Tensor, originals: Tensor) -> _Checked:
    guesses, truths = checked_rows(reconstructions, originals)
    _check_finite(guesses)
    return _Checked(guesses, truths, guesses)


def _tokens(reconstructions: Tensor, originals: Tensor) -> _Checked:
    guesses, truths = checked_tokens(reconstructions, originals)
    return _Checked(guesses, truths, guesses)


_CHECKS: dict[str, Callable[[Tensor, Tensor], _Checked]] = {
    "image": _images,
    "table": _rows,
    "text": _tokens,
}


def _check_range(originals: Tensor) -> None:
    lowest, highest = originals.min().item(), originals.max().item()
    if not (lowest >= 0 and highest <= 1):  # NaN fails too
        raise ConfigError(
            f"expected originals in [0, 1], got {lowest:.3g} to {highest:.3g}; undo "
            "the normalisation of originals and reconstructions first"
        )


def _check_finite(reconstructions: Tensor) -> None:
    is_broken = ~reconstructions.isfinite().flatten(1).all(1)
    if bool(is_broken.any()):
        raise ConfigError(
            "expected finite reconstructions, got NaN or infinity in "
            f"{int(is_broken.sum())} of {len(is_broken)}, first in number "
            f"{int(is_broken.nonzero()[0])}; a failed attack has no score"
        )


def _in_chunks(
    metric: Metric, guesses: Tensor, originals: Tensor, weights: Path | None
) -> Tensor:
    size = len(originals) if metric.needs_all_images else CHUNK
    pairs = zip(torch.split(guesses, size), torch.split(originals, size), strict=True)
    return torch.cat([metric(*pair, weights=weights) for pair in pairs])
