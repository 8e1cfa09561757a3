"""Within-class compaction: the distance of codes from the mean of their class.

    Σ_c 1/|S_c| Σ_{i ∈ S_c} ‖z̃_i − μ_c‖²        c over the classes in the batch

S_c are the samples of class c and μ_c the mean of their codes. A class with one sample
adds nothing. The gradient at code i of class c is 2/|S_c| (z̃_i − μ_c).
"""

import math

import torch
from torch import Tensor

from lightsplit.codecs import Codec
from lightsplit.errors import CodecError, ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("wcc")
class WithinClassCompaction(Objective):
    """Keeps the codes of one class close to each other."""

    name = "wcc"
    facts = PartFacts(
        source="the LightSplit paper",
        assumes="labels that are classes; a row per sample",
        client_cost="B²k multiplications",
        attacker="adds the term to its own model",
        status="faithful",
    )

    def check(self, codec: Codec, *, has_tail: bool) -> None:  # noqa: ARG002
        """Refuse a codec whose codes have no row per sample."""
        if not codec.is_sample_wise:
            raise ConfigError(
                f"wcc needs one code per sample; codec {codec.name!r} mixes samples"
            )

    def forward(self, view: ClientView) -> Tensor:
        """Return the compaction of the codes of one batch."""
        return within_class_compaction(view.code.values, view.labels)


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
    if labels.is_floating_point():
        raise CodecError(
            f"compaction needs labels that are classes, got labels of {labels.dtype}"
        )
    rows = code.reshape(len(code), math.prod(code.shape[1:]))
    # A product with this matrix, not indexing: its gradient adds up in a fixed order.
    same_class = (labels.unsqueeze(1) == labels).to(rows.dtype)  # (B, B)
    share = same_class.sum(dim=1).reciprocal()  # 1/|S_c| of each sample's class
    means = (same_class @ rows) * share.unsqueeze(1)
    return torch.dot(share, (rows - means).square().sum(dim=1))
