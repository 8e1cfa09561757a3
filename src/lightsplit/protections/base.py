"""The interface of a label protection.

    labels ──draw, once, before training──► labels that the client trains on
    output gradient ──protect, in every step──► output gradient that is sent

With a linear tail the output gradient of a sample is (p − y) W: its direction is the
label. A protection changes the labels before training or the gradients that are sent,
or both. It runs at the client, with random numbers from the client's secret: the server
cannot draw them again. The tail, which stays with the client, learns from the gradient
as it was.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.registry import Registry


class LabelProtection(ABC):
    """A way to protect labels.

    Args:
        classes: the number of classes; a run gives it.

    Attributes:
        name: the registered name.
        facts: what a user should know before choosing it.
        protects_gradients: whether it changes the output gradients that are sent.
        epsilon: of the differential privacy of each label; None where none is promised.
    """

    name: ClassVar[str]
    facts: ClassVar[PartFacts] = PartFacts()
    protects_gradients: ClassVar[bool] = True

    def __init__(self, *, classes: int) -> None:
        self.classes = classes
        self.epsilon: float | None = None

    def draw_shifts(self, count: int) -> Tensor:
        """Return how far each of ``count`` labels moves on, in classes.

        Torch's generator is seeded from the client's secret around this call. It is
        made once, before training: a label that was drawn anew in every epoch could be
        averaged.
        """
        return torch.zeros(count, dtype=torch.int64)

    def protect(self, gradient: Tensor, labels: Tensor) -> Tensor:
        """Return the output gradient to send in place of ``gradient``.

        Args:
            gradient: of the loss by the output, a row per sample (B, d).
            labels: the class of every row (B,).

        Torch's generator is seeded from the client's secret around this call.
        """
        del labels
        return gradient


def protected(
    protections: Sequence[LabelProtection], labels: object, gradient: Tensor
) -> Tensor:
    """Return the output gradient after all protections, one after the other."""
    rows = gradient.flatten(1)
    is_class = isinstance(labels, Tensor) and labels.shape == rows.shape[:1]
    if not isinstance(labels, Tensor) or not is_class:
        names = ", ".join(one.name for one in protections)
        raise ConfigError(
            f"{names} needs one class for each of the {len(rows)} rows of the output; "
            "the labels of this task are something else"
        )
    for protection in protections:
        rows = protection.protect(rows, labels.long())
    return rows.view_as(gradient)


LABEL_PROTECTIONS: Registry[LabelProtection] = Registry(
    "label protection", "lightsplit.label_protections"
)
