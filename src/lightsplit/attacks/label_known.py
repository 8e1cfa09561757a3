"""Labels from messages, given the labels of half of the recorded samples.

    known rows ─► read in five ways, tried on a quarter of them ─► the best way
    other rows ─► read in that way ─► labels

    direction   the nearest known rows by cosine
    line        the same without the sign: an attacker on ``max-norm``
    place       the nearest known rows: direction and length
    length      the nearest known lengths: rare classes have longer gradients
    plane       logistic regression

This is the attacker that knows the protection of the labels and adapts to it. A client
that colludes knows the labels of its own samples; here its samples are a random half of
the victim's, as close to the rest as any can be.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from lightsplit.attacks.base import ATTACKS, Kind, at_least
from lightsplit.attacks.capabilities import InfersLabels
from lightsplit.attacks.decoder_stems import Standardise
from lightsplit.attacks.knowledge import Hints
from lightsplit.attacks.label_scores import LabelScore, hint_accuracy
from lightsplit.attacks.labels import label_rows
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.part_facts import PartFacts
from lightsplit.truths import KINDS

NEIGHBOURS = 5
TRIED = 0.25  # of the known rows
REGULARISATION = 0.1

Reading = Callable[[Tensor, Tensor, Tensor], Tensor]  # known rows, labels, other rows


@ATTACKS.register("label-known")
class LabelKnown(InfersLabels):
    """The label of the nearest known rows, read in the way that works best.

    Attributes:
        neighbours: that vote on a label.
    """

    name = "label-known"
    kind: ClassVar[Kind] = "labels"
    runs_by_default = True
    truths = KINDS
    needs = ("known_rows",)
    threat_model = "a server that knows the labels of half of the recorded samples"
    cost = "a distance for every two rows, and a logistic regression; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="the labels of half of the recorded samples",
        status="ours",
    )

    def __init__(
        self, *, known_rows: Hints, neighbours: int = NEIGHBOURS, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, neighbours=neighbours)
        self.known = known_rows
        self.neighbours = neighbours

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return the label of every row; those of known rows are read like others."""
        rows = label_rows(view, source)
        if len(self.known.rows) < 8 or int(self.known.rows.max()) >= len(rows):
            raise AuditError(
                f"label-known needs at least 8 known rows of {source}, got "
                f"{len(self.known.rows)}, of a view of {len(rows)}"
            )
        known, labels = rows[self.known.rows], self.known.labels
        cut = int(len(known) * (1 - TRIED))
        right = {
            name: float(
                (read(known[:cut], labels[:cut], known[cut:]) == labels[cut:])
                .float()
                .mean()
            )
            for name, read in self._readings().items()
        }
        best = max(right, key=lambda name: right[name])
        self.notes.append(f"{source}: read by {best}")
        return self._readings()[best](known, labels, rows)

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return the accuracy on all rows but the known ones."""
        return hint_accuracy(
            self.infer(view, source), labels, hints=self.known.rows, seed=self.seed
        )

    def _readings(self) -> dict[str, Reading]:
        return {
            "direction": self._nearest(_cosine),
            "line": self._nearest(lambda some, others: _cosine(some, others).abs()),
            "place": self._nearest(lambda some, others: -torch.cdist(some, others)),
            "length": self._nearest(lambda s, o: -torch.cdist(_length(s), _length(o))),
            "plane": self._separate,
        }

    def _nearest(self, likeness: Callable[[Tensor, Tensor], Tensor]) -> Reading:
        def read(known: Tensor, labels: Tensor, others: Tensor) -> Tensor:
            count = min(self.neighbours, len(known))
            nearest = likeness(others, known).topk(count).indices
            return one_hot(labels[nearest]).sum(dim=1).argmax(dim=1)

        return read

    def _separate(self, known: Tensor, labels: Tensor, others: Tensor) -> Tensor:
        if len(torch.unique(labels)) < 2:
            return labels[:1].expand(len(others))
        linear_model = require("sklearn.linear_model", extra="audit")
        standardise = Standardise(known)
        model = linear_model.LogisticRegression(
            C=REGULARISATION, max_iter=200, tol=1e-3, random_state=self.seed
        ).fit(standardise(known).numpy(), labels.numpy())
        return torch.from_numpy(model.predict(standardise(others).numpy())).long()


def _cosine(some: Tensor, others: Tensor) -> Tensor:
    return normalize(some) @ normalize(others).T


def _length(rows: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return lengths
