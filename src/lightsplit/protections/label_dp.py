"""Label differential privacy by randomised response, once, before training.

    label y ─┬─ with probability p = e^ε / (e^ε + K − 1) ──► y
             └─ otherwise ──► one of the K − 1 other classes, all equally likely

Whatever is computed from the drawn labels, by however many epochs and whatever attack,
is ε-differentially private in each label: no message can be more than e^ε times as
likely under one label as under another. Somebody who knows nothing else about a sample
is right about its label with probability p at most, if classes are equally likely.
Somebody who can tell the class from the image alone, or from its code, needs no label:
that is not about labels. (Ghazi et al., NeurIPS 2021: this is their LP-1ST with a flat
prior.)

Two runs draw anew, so their ε add up.
"""

import torch
from torch import Tensor

from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.protections.base import LABEL_PROTECTIONS, LabelProtection
from lightsplit.randomised_response import kept

MOST = 50.0  # beyond, a label is changed less often than once in 10²¹


@LABEL_PROTECTIONS.register("label-dp")
class LabelDP(LabelProtection):
    """Replaces some labels by random ones, once, before training.

    Args:
        epsilon: of the differential privacy of each label; less hides more.
    """

    name = "label-dp"
    facts = PartFacts(
        source="Ghazi et al., NeurIPS 2021: LP-1ST with a flat prior",
        assumes="one run: the ε of several add up",
        client_cost="accuracy, as some labels are wrong",
        attacker="guesses the class from the image, which needs no label",
        status="faithful",
    )
    protects_gradients = False

    def __init__(self, *, epsilon: float, classes: int) -> None:
        super().__init__(classes=classes)
        if not 0 < epsilon <= MOST:
            raise ConfigError(
                f"the epsilon of label-dp must be above 0 and at most {MOST:g}, "
                f"got {epsilon:g}"
            )
        self.epsilon = epsilon

    def draw_shifts(self, count: int) -> Tensor:
        """Return 0 for a label that stays, and else 1 to K − 1 with equal chances."""
        # In float64: 32 bits are too coarse for a small chance of a change.
        changes = torch.rand(count, dtype=torch.float64) >= kept(
            self.epsilon or 0.0, self.classes
        )
        others = torch.randint(1, self.classes, (count,))
        return torch.where(changes, others, 0)
