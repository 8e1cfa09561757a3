"""Labels from the messages of training steps.

    rows of code, output, output_gradient or code_gradient ─► a label for each row

    label-kmeans   as many clusters as classes, no knowledge; clusters have no names
    label-hint     one known sample of each class: the nearest hint by cosine
    label-norm     the length of the row: a rare or hard class has longer gradients

The label clustering of Liu et al. (2022) and the norm attack of Li et al. (ICLR 2022).
With cross-entropy and a linear tail W the output gradient of a sample is (p − y) W over
the batch size: almost from the first step its direction gives the label away, whatever
the codec at the front cut. "Labels never leave the client" is not label privacy.

Where we differ: the attacker is the server of the U-shaped topology, so there are more
than two classes; the norm is scored one class against the rest. In vanilla topology the
server is given the labels, and there is no output gradient to attack.
"""

import warnings
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lightsplit.attacks.base import ATTACKS, Budget, Kind, at_least
from lightsplit.attacks.capabilities import InfersLabels
from lightsplit.attacks.knowledge import Hints
from lightsplit.attacks.label_scores import (
    LabelScore,
    hint_accuracy,
    leak_auc,
    matched_accuracy,
)
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.extras import require
from lightsplit.part_facts import PartFacts
from lightsplit.truths import KINDS

RESTARTS: dict[Budget, int] = {"quick": 4, "short": 10, "full": 20}


@ATTACKS.register("label-kmeans")
class LabelKMeans(InfersLabels):
    """Clusters of rows; ``matched_accuracy`` names them as favourably as possible.

    Attributes:
        restarts: of k-means; the best one counts. By default the budget decides.
    """

    name = "label-kmeans"
    kind: ClassVar[Kind] = "labels"
    runs_by_default = True
    truths = KINDS
    needs = ("classes",)
    threat_model = "a server that knows how many classes there are, and nothing else"
    cost = "k-means, 4 restarts (quick) or 20 (full); seconds"
    facts = PartFacts(
        source="Liu et al., TIFS 2024",
        assumes="the number of classes",
        status="adapted",
    )

    def __init__(
        self, *, classes: int, restarts: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        at_least(self.name, 1, restarts=restarts)
        self.classes = classes
        self.restarts = restarts or RESTARTS[self.budget]

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return the cluster of every row; gradients are first made equally long."""
        rows = label_rows(view, source)
        if len(rows) < self.classes:
            raise AuditError(
                f"expected at least {self.classes} rows of {source}, got {len(rows)}"
            )
        rows = normalize(rows) if source.endswith("gradient") else rows
        return cluster_rows(rows, self.classes, restarts=self.restarts, seed=self.seed)

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return the accuracy under the best naming of the clusters."""
        return matched_accuracy(self.infer(view, source), labels, seed=self.seed)


@ATTACKS.register("label-hint")
class LabelHint(InfersLabels):
    """The label of the nearest hint, by cosine; the hints themselves do not count."""

    name = "label-hint"
    kind: ClassVar[Kind] = "labels"
    runs_by_default = True
    truths = KINDS
    needs = ("hints",)
    threat_model = "a server that knows the label of one recorded sample of each class"
    cost = "one product of rows and hints; none to speak of"
    facts = PartFacts(
        source="Liu et al., TIFS 2024",
        assumes="a known sample of each class",
        status="faithful",
    )

    def __init__(self, *, hints: Hints, **options: Any) -> None:
        super().__init__(**options)
        self.hints = hints

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return for each row the label of the hint whose direction is nearest."""
        rows = normalize(label_rows(view, source))
        if int(self.hints.rows.max()) >= len(rows):
            raise AuditError(
                f"a hint is row {int(self.hints.rows.max())} of {source}, "
                f"of which the view holds {len(rows)}"
            )
        nearest = (rows @ rows[self.hints.rows].T).argmax(dim=1)
        return self.hints.labels[nearest]

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return the accuracy on all rows but the hints."""
        return hint_accuracy(
            self.infer(view, source), labels, hints=self.hints.rows, seed=self.seed
        )


@ATTACKS.register("label-norm")
class LabelNorm(InfersLabels):
    """The length of each row: a score, not a label; see ``leak_auc``."""

    name = "label-norm"
    kind: ClassVar[Kind] = "labels"
    runs_by_default = True
    truths = KINDS
    threat_model = "a server that knows nothing but the messages"
    cost = "one norm for each row; none to speak of"
    facts = PartFacts(
        source="Li et al., ICLR 2022",
        assumes="nothing but the messages",
        status="adapted",
    )

    def infer(self, view: ServerView, source: str) -> Tensor:
        """Return the Euclidean norm of every row."""
        norms: Tensor = torch.linalg.vector_norm(label_rows(view, source), dim=1)
        return norms

    def score(self, view: ServerView, source: str, labels: Tensor) -> LabelScore:
        """Return how well the norm tells a class from the rest."""
        return leak_auc(self.infer(view, source), labels, seed=self.seed)


def cluster_rows(rows: Tensor, count: int, *, restarts: int, seed: int) -> Tensor:
    """Return the cluster of every row, by k-means."""
    cluster = require("sklearn.cluster", extra="audit")
    exceptions = require("sklearn.exceptions", extra="audit")
    clusters = cluster.KMeans(count, n_init=restarts, random_state=seed)
    with warnings.catch_warnings():  # fewer distinct rows than classes are no fault
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        return torch.from_numpy(clusters.fit_predict(rows.numpy())).long()


def label_rows(view: ServerView, source: str) -> Tensor:
    """Return one flat float32 row per sample, or raise the reason why there is none."""
    if source.startswith("output") and view.contract.topology == "vanilla":
        raise AuditError(
            f"a vanilla run has no {source}: the server holds tail and labels itself; "
            "attack 'code' or 'code_gradient' instead"
        )
    return view.training_messages(source).flatten(1).float()
