"""What objectives about bits share: their entropy, and refusals of other codes."""

import torch
from torch import Tensor

from lightsplit.codecs import Codec, FewBits
from lightsplit.errors import CodecError, ConfigError


def check_bits(name: str, codec: Codec) -> None:
    """Refuse a codec whose values are not bits."""
    if not (isinstance(codec, FewBits) and codec.levels == 2):
        raise ConfigError(
            f"{name} needs a code of bits: use codec lightsplit-b, got {codec.name!r}"
        )


def check_classes(name: str, classes: int | None) -> int:
    """Return the number of classes; refuse a task whose labels are no classes."""
    if classes is None or classes < 1:
        raise ConfigError(f"{name} needs labels that are classes, this task has none")
    return classes


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return the classes as (B, classes) of 0 and 1; refuse other labels."""
    if labels.ndim != 1 or labels.is_floating_point():
        raise CodecError(
            f"expected one class per sample, got labels of {labels.dtype} "
            f"{tuple(labels.shape)}"
        )
    return torch.nn.functional.one_hot(labels.long(), classes).to(torch.float32)


def binary_entropy(ones: Tensor) -> Tensor:
    """Return the entropy in bits of bits that are 1 with these probabilities.

    Example:
        >>> binary_entropy(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0., 1., 0.])
    """
    zeros = 1 - ones
    total: Tensor = torch.special.entr(ones) + torch.special.entr(zeros)
    return total / torch.log(torch.tensor(2.0, device=ones.device))
