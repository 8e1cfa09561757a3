"""The gradients of a head's weights, for the few parties that ever have them.

    client ─code─► server ─code gradient─► client ─► gradient of the head's weights
                                                     (stays here)
    shared head:  client 1 ─head before─► client 2 ─head after─► client 3

In split learning a server has the gradient at the cut and those of its own weights.
These depend on an image only through its code, so a server that has the code learns
nothing more from them. The gradients of the head's weights stay with the client. Only
if a head is handed on do its next holders see it before and after a turn. They can then
compute the gradient of a turn of one step: SGD's update is the gradient, and Adam's
state, which travels with the head, reveals it too. So attacks that invert gradients
need a *shared* head, an accomplice that holds it next, and a turn of one step. Here
that step has one image, which is their best case.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """What server and accomplice see of a step on each image alone.

    Attributes:
        gradients: of the trained weights of head and encoder, by name (N, …).
        at_the_code: the gradients that the server returns for the codes (N, …).
        tail: gradients of the last weight matrix of the tail (N, classes, …); None if
            the server has the tail.
        labels: as sent to the server; None in the U-shape.
        rest: from codes to logits: the server's network and the tail.
    """

    gradients: Mapping[str, Tensor]
    at_the_code: Tensor
    tail: Tensor | None
    labels: Tensor | None
    rest: nn.Module
