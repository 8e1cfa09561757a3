"""Labels from the messages of training steps.

    rows of code, output, output_gradient or code_gradient ─► a label for each row

    label-kmeans   as many clusters as classes, no knowledge; clusters have no names
    label-hint     one known sample of each class: the nearest hint by cosine
    label-norm     the length of the row: a rare or hard class has longer gradients

The label clustering of Liu et al. (2022) and the norm attack of Li et al. (ICLR 2022).
With cross-entropy and a linear tail W the output gradient of a sample is (p − y) W over
the batch size: its direction is the label's almost from the first step, whatever the
codec at the front cut. "Labels never leave the client" is not label privacy.

Where we differ: the attacker is the server of the U-shaped topology, so there are more
than two classes; the norm is scored one class against the rest. In vanilla topology the
server is given the labels, and there is no output gradient to attack.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lightsplit.attacks.base import ATTACKS, LabelInference
from lightsplit.attacks.knowledge import Hints
from lightsplit.attacks.label_scores import (
    LabelScore,
    hint_accuracy,
    leak_auc,
    matched_accuracy,
)
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError

RESTARTS = {"quick": 4, "short": 10, "full": 20}


@ATTACKS.register("label-kmeans")
class LabelKMeans(LabelInference):
    """Clusters of rows; ``matched_accuracy`` names them as favourably as can be."""

    name = "label-kmeans"
    needs = ("classes",)
    threat_model = "a server that knows how many classes there are, and nothing else"
    cost = "k-means, 4 restarts (quick) or 20 (full); seconds"
    chance: ClassVar[str] = "of the best naming of clusters drawn at random"

    def __init__(self, *, classes: int, **options: Any) -> None:
        super().__init__(**options)
        self.classes = classes

    def infer(self, view: ServerView, message: str) -> Tensor:
        """Return the cluster of every row; gradients are first made equally long."""
        from sklearn.cluster import KMeans

        rows = _rows(view, message)
        if len(rows) < self.classes:
            raise AuditError(
                f"expected at least {self.classes} rows of {message}, got {len(rows)}"
            )
        rows = normalize(rows) if message.endswith("gradient") else rows
        clusters = KMeans(
            self.classes, n_init=RESTARTS[self.budget], random_state=self.seed
        )
        return torch.from_numpy(clusters.fit_predict(rows.numpy())).long()

    def score(self, view: ServerView, message: str, labels: Tensor) -> LabelScore:
        """Return the accuracy under the best naming of the clusters."""
        return matched_accuracy(self.infer(view, message), labels, seed=self.seed)


@ATTACKS.register("label-hint")
class LabelHint(LabelInference):
    """The label of the nearest hint, by cosine; the hints themselves do not count."""

    name = "label-hint"
    needs = ("hints",)
    threat_model = "a server that knows the label of one recorded sample of each class"
    cost = "one product of rows and hints; none to speak of"

    def __init__(self, *, hints: Hints, **options: Any) -> None:
        super().__init__(**options)
        self.hints = hints

    def infer(self, view: ServerView, message: str) -> Tensor:
        """Return the label of the hint that each row points along most."""
        rows = normalize(_rows(view, message))
        if int(self.hints.rows.max()) >= len(rows):
            raise AuditError(
                f"a hint is row {int(self.hints.rows.max())} of {message}, "
                f"of which the view holds {len(rows)}"
            )
        nearest = (rows @ rows[self.hints.rows].T).argmax(dim=1)
        return self.hints.labels[nearest]

    def score(self, view: ServerView, message: str, labels: Tensor) -> LabelScore:
        """Return the accuracy on all rows but the hints."""
        return hint_accuracy(
            self.infer(view, message), labels, hints=self.hints.rows, seed=self.seed
        )


@ATTACKS.register("label-norm")
class LabelNorm(LabelInference):
    """The length of each row: a score, not a label; see ``leak_auc``."""

    name = "label-norm"
    threat_model = "a server that knows nothing but the messages"
    cost = "one norm for each row; none to speak of"
    chance: ClassVar[str] = "leak AUC with the labels shuffled"

    def infer(self, view: ServerView, message: str) -> Tensor:
        """Return the Euclidean norm of every row."""
        norms: Tensor = torch.linalg.vector_norm(_rows(view, message), dim=1)
        return norms

    def score(self, view: ServerView, message: str, labels: Tensor) -> LabelScore:
        """Return how well the norm tells a class from the rest."""
        return leak_auc(self.infer(view, message), labels, seed=self.seed)


def _rows(view: ServerView, message: str) -> Tensor:
    """Return one flat float32 row per sample, or say why there is none."""
    if message.startswith("output") and view.contract.topology == "vanilla":
        raise AuditError(
            f"a vanilla run has no {message}: the server holds tail and labels itself; "
            "attack 'code' or 'code_gradient' instead"
        )
    return view.training_messages(message).flatten(1).float()
