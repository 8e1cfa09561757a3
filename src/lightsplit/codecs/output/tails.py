"""Tails that start from fewer values, and their conversion back.

    logits = W (M u) + b:   narrowed W has k columns   widened (W M) has all d

The narrow tail starts as the whole tail seen through M, times √(d / k), so that its
first logits are as large as the whole tail's. Widened, the model is plain again: its
weights have the same names and shapes, and its logits are the same.
"""

import copy
import math

from torch import Tensor, nn

from lightsplit.codecs.output.base import OutputCodec
from lightsplit.errors import ConfigError


def narrowed_tail(tail: nn.Module, codec: OutputCodec) -> nn.Module:
    """Return a tail for the codec's values; the same tail if outputs are sent whole."""
    matrix = codec.matrix()
    if matrix is None:
        return tail
    narrow = copy.deepcopy(tail)
    first = _first_linear(narrow, codec.activation_size)
    gain = math.sqrt(codec.activation_size / codec.code_size)
    _replace(first, gain * first.weight.detach() @ matrix.T)
    return narrow


def widened_tail(tail: nn.Module, codec: OutputCodec) -> nn.Module:
    """Return the tail that gives the same logits from whole outputs."""
    matrix = codec.matrix()
    if matrix is None:
        return tail
    wide = copy.deepcopy(tail)
    first = _first_linear(wide, codec.code_size)
    _replace(first, first.weight.detach() @ matrix.to(first.weight.device))
    return wide


def _first_linear(tail: nn.Module, size: int) -> nn.Linear:
    """Return the layer that takes the output; refuse a tail that has none."""
    for module in tail.modules():
        if any(True for _ in module.parameters(recurse=False)):
            if isinstance(module, nn.Linear) and module.in_features == size:
                return module
            break
    raise ConfigError(
        f"a shorter output needs a tail that begins with a linear layer of {size} "
        "values; choose output codec raw or low-rank"
    )


def _replace(layer: nn.Linear, weight: Tensor) -> None:
    layer.in_features = weight.shape[1]
    layer.weight = nn.Parameter(weight.contiguous(), layer.weight.requires_grad)
