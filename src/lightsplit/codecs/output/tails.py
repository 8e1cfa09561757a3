"""A tail that starts at fewer values, and back again.

    logits = W (M u) + b:   narrowed W has k columns   widened (W M) has all d

The narrow tail starts as the whole one seen through M, times √(d / k), so that logits
begin as large as they would have. Widened, the model is a plain one again: the same
weights' names and shapes, the same logits.
"""

import copy
import math

from torch import Tensor, nn

from lightsplit.codecs.output.base import OutputCodec
from lightsplit.errors import ConfigError


def narrowed_tail(tail: nn.Module, codec: OutputCodec) -> nn.Module:
    """Return a tail for what ``codec`` sends; the given one where that is whole."""
    matrix = codec.matrix()
    if matrix is None:
        return tail
    narrow = copy.deepcopy(tail)
    first = _first_linear(narrow, codec.activation_size)
    gain = math.sqrt(codec.activation_size / codec.code_size)
    _replace(first, gain * first.weight.detach() @ matrix.T)
    return narrow


def widened_tail(tail: nn.Module, codec: OutputCodec) -> nn.Module:
    """Return the tail that makes the same logits of whole outputs."""
    matrix = codec.matrix()
    if matrix is None:
        return tail
    wide = copy.deepcopy(tail)
    first = _first_linear(wide, codec.code_size)
    _replace(first, first.weight.detach() @ matrix.to(first.weight.device))
    return wide


def _first_linear(tail: nn.Module, size: int) -> nn.Linear:
    """Return the layer that the output goes into, or refuse another kind of tail."""
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
