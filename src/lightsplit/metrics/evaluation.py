"""All metrics of a set of reconstructions at once.

Reconstructions may lie outside [0, 1]. They are clipped first (``clip=True``), because
an attacker knows the range of an image, and clipping never moves a value away from
the original. ``clip=False`` scores them unclipped, as the authors of UnSplit did for
MNIST; an attack that overshoots then looks weaker than it is. Correlation and
scaled_mse ignore brightness and contrast and always take the values unclipped.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.metrics.base import METRICS, Metric, checked_pair

CHUNK = 256  # images per call, for metrics that score each image on its own


@torch.no_grad()
def evaluate(
    reconstructions: Tensor,
    originals: Tensor,
    *,
    metrics: Sequence[str] | None = None,
    clip: bool = True,
    weights: Path | None = None,
) -> dict[str, Tensor]:
    """Return the values (N,) of each metric by name.

    Args:
        reconstructions: (N, C, H, W), finite.
        originals: the same shape, in [0, 1].
        metrics: names in METRICS; by default all, LPIPS's only if ``weights`` is given.
        clip: whether reconstructions are clipped to [0, 1] before they are scored.
        weights: the folder of LPIPS's weights.

    Example:
        >>> originals = torch.rand(8, 3, 32, 32)
        >>> values = evaluate(originals / 2, originals, metrics=["psnr", "correlation"])
        >>> values["correlation"]
        tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    chosen = [METRICS.create(name) for name in metrics or _default_names(weights)]
    reconstructions, originals = checked_pair(reconstructions, originals)
    _check_values(reconstructions, originals)
    clipped = reconstructions.clamp(0, 1) if clip else reconstructions
    values = {}
    for metric in chosen:
        guesses = reconstructions if metric.is_scale_free else clipped
        values[metric.name] = _in_chunks(metric, guesses, originals, weights)
    return values


def _default_names(weights: Path | None) -> list[str]:
    every = map(METRICS.create, METRICS.names())
    return [m.name for m in every if weights is not None or not m.needs_weights]


def _check_values(reconstructions: Tensor, originals: Tensor) -> None:
    lowest, highest = originals.min().item(), originals.max().item()
    if not (lowest >= 0 and highest <= 1):  # NaN fails too
        raise ConfigError(
            f"expected originals in [0, 1], got {lowest:.3g} to {highest:.3g}; undo "
            "the normalisation of originals and reconstructions first"
        )
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
