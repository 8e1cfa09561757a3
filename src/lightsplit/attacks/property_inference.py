"""Does a sample have a property that is not its label? From its code.

    known codes, with the property of their samples ─► classifier ─► the targets' codes

The property head of FSHA (Pasquini et al., CCS 2021) with true codes in place of a
hijacked client's. Even image sets without further annotation have properties to ask
about:

    brightness   is it brighter than half of the known images?
    contrast     does it vary more than half of them?
    balance      is its left half brighter than its right, by more than for half?
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, at_least
from lightsplit.attacks.capabilities import TARGETS, InfersProperty, Suspicion
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.separator import Separator
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.registry import unknown_name

MOST_PAIRS = 5_000


def _left_over_right(images: Tensor) -> Tensor:
    half = images.shape[-1] // 2
    left, right = images[..., :half], images[..., -half:]
    return left.flatten(1).mean(dim=1) - right.flatten(1).mean(dim=1)


PROPERTIES: dict[str, Callable[[Tensor], Tensor]] = {
    "brightness": lambda images: images.flatten(1).mean(dim=1),
    "contrast": lambda images: images.flatten(1).std(dim=1),
    "balance": _left_over_right,
}


@ATTACKS.register("property-classifier")
class PropertyClassifier(InfersProperty):
    """Logistic regression on codes of samples whose property is known.

    Attributes:
        property: brightness, contrast or balance.
        most_pairs: codes to learn from.
    """

    name = "property-classifier"
    kind: ClassVar[Kind] = "facts"
    needs = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = "four logistic regressions; seconds"
    facts = PartFacts(
        source="after the property head of Pasquini et al., CCS 2021",
        assumes="true codes of samples whose property is known",
        status="adapted",
    )

    def __init__(
        self,
        *,
        pairs: Pairs,
        property: str = "brightness",  # noqa: A002 (the option's name)
        most_pairs: int = MOST_PAIRS,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 20, most_pairs=most_pairs)
        if property not in PROPERTIES:
            raise AuditError(unknown_name("property", property, list(PROPERTIES)))
        self.pairs = pairs.part(slice(most_pairs))
        self.measure = PROPERTIES[property]
        self.half = float(self.measure(self.pairs.images).median())
        self.notes.append(f"property: {property}")

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the codes under attack."""
        del view
        return (TARGETS,)

    def holds(self, samples: Tensor) -> Tensor:
        """Return whether samples are above half of the known ones."""
        return self.measure(samples) > self.half

    def suspect(self, view: ServerView, source: str) -> Suspicion:
        """Return the classifier's belief about every target."""
        if source != TARGETS:
            raise AuditError(f"{self.name} reads the targets' codes, got {source!r}")
        rows = self.pairs.codes.flatten(1).float().cpu()
        yes = self.holds(self.pairs.images).long().cpu()
        separator = Separator(rows, yes, seed=self.seed)
        return Suspicion(separator.scores(view.codes.flatten(1).float().cpu()), 0.0)
