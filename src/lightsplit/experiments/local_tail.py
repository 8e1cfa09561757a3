"""The layer that ends a client's own model where nothing is sent (codec ``none``)."""

import math

from torch import nn

from lightsplit.runtime import Secret


def make_local_tail(
    activation: tuple[int, ...], result: tuple[int, ...], first_weights: Secret
) -> nn.Module:
    """Return one linear layer from an activation to the model's result.

    Args:
        activation: shape of one activation.
        result: shape of the model's result for one sample.
        first_weights: that its weights are drawn from.
    """
    with first_weights.scope("local tail"):
        layer = nn.Linear(math.prod(activation), math.prod(result))
    shaping = [nn.Unflatten(1, result)] if len(result) > 1 else []
    return nn.Sequential(nn.Flatten(), layer, *shaping)
