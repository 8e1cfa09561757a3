"""A decoder that is also told the label of every image.

    code and label ─► decoder (decoder.py) ─► image

How much does a code reveal beyond the class? A code of few bits spends most of them on
the class; compare this attack with the class mean, which is told the same label.
"""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.decoder import DecoderAttack
from lightsplit.attacks.decoder_training import decode
from lightsplit.attacks.knowledge import LabelledImages, Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError


@ATTACKS.register("labelled-decoder")
class LabelledDecoder(DecoderAttack):
    """The decoder with the true label beside every code; its options are decoder's."""

    name = "labelled-decoder"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = False
    truths = ("image", "table")
    needs = ("pairs", "auxiliary", "labels", "classes")
    threat_model = "a server that was given pairs and knows the labels of the victims"
    cost = "that of decoder"

    def __init__(
        self,
        *,
        pairs: Pairs,
        auxiliary: LabelledImages,
        labels: Tensor,
        classes: int,
        **options: Any,
    ) -> None:
        told = with_labels(pairs.codes, auxiliary.labels, classes)
        super().__init__(pairs=replace(pairs, codes=told), **options)
        self.labels = labels
        self.classes = classes

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the decoder's image for every code and its label."""
        codes = with_labels(view.codes, self.labels, self.classes)
        return decode(self.train(progress).network, codes)


def with_labels(codes: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Return codes with their labels: as further maps, or as further values."""
    if len(labels) != len(codes):
        raise AuditError(
            f"expected a label for each of {len(codes)} codes, got {len(labels)}"
        )
    marks = one_hot(labels, classes).to(codes)
    if codes.ndim != 4:
        return torch.cat([codes.flatten(1), marks], dim=1)
    planes = marks[:, :, None, None].expand(-1, -1, *codes.shape[2:])
    return torch.cat([codes, planes], dim=1)
