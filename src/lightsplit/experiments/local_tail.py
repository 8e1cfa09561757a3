"""The layer that ends a client's own model where nothing is sent (codec ``none``)."""

import math

from torch import nn

from lightsplit.runtime import Secret


def make_local_tail(
    activation: tuple[int, ...],
    result: tuple[int, ...],
    first_weights: Secret,
    hidden: int = 0,
) -> nn.Module:
    """Return one linear layer from an activation to the model's result.

    Args:
        activation: shape of one activation.
        result: shape of the model's result for one sample.
        first_weights: the secret from which its weights are drawn.
        hidden: width of a hidden layer before it; 0 for none.
    """
    width = math.prod(activation)
    layers: list[nn.Module] = [nn.Flatten()]
    with first_weights.scope("local tail"):
        if hidden:
            layers += [nn.Linear(width, hidden), nn.LayerNorm(hidden), nn.ReLU()]
        layers.append(nn.Linear(hidden or width, math.prod(result)))
    if len(result) > 1:
        layers.append(nn.Unflatten(1, result))
    return nn.Sequential(*layers)
