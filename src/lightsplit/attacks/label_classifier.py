"""Labels from codes by a classifier, trained on codes whose labels are known.

    labelled codes ─► standardise ─► logistic regression ─► a label for every code

A client that colludes knows the labels of its own codes. Clusters and single hints
(labels.py) understate what such a server reads from a code. The strength of the
regularisation is the one that does best on a tenth of the labelled codes.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, at_least
from lightsplit.attacks.capabilities import TARGETS, InfersLabels
from lightsplit.attacks.knowledge import LabelledImages, Pairs
from lightsplit.attacks.label_scores import LabelScore, accuracy
from lightsplit.attacks.separator import Separator
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.truths import KINDS

MOST_PAIRS = 5_000
MESSAGE = "code"


@ATTACKS.register("label-classifier")
class LabelClassifier(InfersLabels):
    """Logistic regression on codes whose labels are known.

    Attributes:
        most_pairs: labelled codes to learn from.
    """

    name = "label-classifier"
    kind: ClassVar[Kind] = "labels"
    runs_by_default = True
    truths = KINDS
    needs = ("pairs", "auxiliary")
    threat_model = "a server that was given codes with their labels by a client"
    cost = "four logistic regressions; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of samples whose labels are known",
        status="ours",
    )

    def __init__(
        self,
        *,
        pairs: Pairs,
        auxiliary: LabelledImages,
        most_pairs: int = MOST_PAIRS,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 10, most_pairs=most_pairs)
        self.codes = pairs.codes[:most_pairs].flatten(1).float().cpu()
        self.labels = auxiliary.labels[:most_pairs].cpu()
        self._separator: Separator | None = None

    def sources(self, view: ServerView) -> Sequence[str]:
        """Return the targets' codes, and the codes of training steps if recorded."""
        return [TARGETS, *(kind for kind in view.recorded_kinds if kind == MESSAGE)]

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return the most likely label of every code."""
        if source not in (TARGETS, MESSAGE):
            raise AuditError(f"label-classifier reads codes, got {source!r}")
        rows = view.codes if source == TARGETS else view.training_messages(source)
        return self._trained().labels_of(rows.flatten(1).float().cpu())

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return the share of labels that are right."""
        return accuracy(self.infer(view, source), labels, seed=self.seed)

    def _trained(self) -> Separator:
        """Return the classifier, trained when it is first asked for."""
        if self._separator is None:
            self._separator = Separator(self.codes, self.labels, seed=self.seed)
            self.notes.append(f"learnt from {len(self.codes):,} labelled codes")
        return self._separator
