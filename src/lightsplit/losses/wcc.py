"""Within-class compaction: how far codes lie from the mean of their class.

    Σ_c 1/|S_c| Σ_{i ∈ S_c} ‖z̃_i − μ_c‖²        c over the classes in the batch

S_c are the samples of class c and μ_c the mean of their codes. The client computes it,
on the code, from its own labels; nothing about it is sent. A class with one sample
adds nothing. The gradient at code i of class c is 2/|S_c| (z̃_i − μ_c).
"""

import math

import torch
from torch import Tensor

from lightsplit.errors import CodecError


def within_class_compaction(code: Tensor, labels: Tensor) -> Tensor:
    """Return the sum over classes of the mean squared distance to the class mean.

    Args:
        code: (B, …), flattened for each sample.
        labels: (B,) of any integers.

    Example:
        >>> code = torch.tensor([[0.0], [2.0], [5.0]])
        >>> within_class_compaction(code, torch.tensor([7, 7, 3]))
        tensor(1.)
    """
    if labels.ndim != 1 or code.ndim == 0 or len(code) != len(labels):
        raise CodecError(
            f"expected one label for each row of the code {tuple(code.shape)}, "
            f"got labels {tuple(labels.shape)}"
        )
    rows = code.reshape(len(code), math.prod(code.shape[1:]))
    # A product with this matrix, not indexing: its gradient adds up in a fixed order.
    same_class = (labels.unsqueeze(1) == labels).to(rows.dtype)  # (B, B)
    share = same_class.sum(dim=1).reciprocal()  # 1/|S_c| of each sample's class
    means = (same_class @ rows) * share.unsqueeze(1)
    return torch.dot(share, (rows - means).square().sum(dim=1))
