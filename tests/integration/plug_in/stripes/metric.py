"""A metric that compares the brightness of two images."""

from torch import Tensor

from lightsplit.metrics.base import scored_as


@scored_as("brightness", higher_is_better=False, span=(0.0, 1.0))
def brightness_difference(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """How far the brightness of a reconstruction is off."""
    return (reconstructions - originals).flatten(1).mean(1).abs()
