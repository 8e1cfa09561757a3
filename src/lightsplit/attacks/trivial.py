"""Attackers that learn nothing: any real attack must beat them.

    mean-image      the mean of the auxiliary images
    class-mean      the mean of the auxiliary images of the victim's true class
    all-black       zeros
    nearest-image   the auxiliary image whose code lies nearest to the victim's

Rows have ``column-mean``, texts ``frequent-token`` and ``frequent-by-place`` in place
of the mean image, and both have ``nearest-known``. All but the nearest do not read the
codes. The class mean is told the true labels: an attack
whose images are no better gives away the class at most. The nearest image is the
strongest guess without learning; it compares with true codes of the auxiliary images.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.knowledge import LabelledImages, Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts

CHUNK = 256  # codes whose distances are in memory at a time


@ATTACKS.register("mean-image")
class MeanImage(Reconstructs):
    """The same mean image for everyone."""

    name = "mean-image"
    kind: ClassVar[Kind] = "trivial"
    runs_by_default = True
    needs = ("auxiliary",)
    threat_model = "anyone who has images of the same kind; the codes are not read"
    cost = "none"
    facts = PartFacts(
        source="LightSplit", assumes="images of the same kind", status="ours"
    )

    def __init__(self, *, auxiliary: LabelledImages, **options: Any) -> None:
        super().__init__(**options)
        self.auxiliary = auxiliary

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the mean image once for every code."""
        progress(1, 1)
        mean = self.auxiliary.images.mean(dim=0)
        return mean.expand(len(view.codes), *mean.shape).clone()


@ATTACKS.register("column-mean")
class ColumnMean(MeanImage):
    """The mean of every column, the same for everyone."""

    name = "column-mean"
    truths = ("table",)
    threat_model = "anyone who has rows of the same kind; the codes are not read"
    facts = PartFacts(
        source="LightSplit", assumes="rows of the same kind", status="ours"
    )


@ATTACKS.register("class-mean")
class ClassMean(Reconstructs):
    """The mean image, or the mean row, of each victim's class."""

    name = "class-mean"
    kind: ClassVar[Kind] = "trivial"
    truths = ("image", "table")
    runs_by_default = True
    needs = ("auxiliary", "labels")
    threat_model = "anyone who has labelled samples and was told the victims' classes"
    cost = "none"
    facts = PartFacts(
        source="LightSplit",
        assumes="labelled samples, and the victims' true classes",
        status="ours",
    )

    def __init__(
        self, *, auxiliary: LabelledImages, labels: Tensor, **options: Any
    ) -> None:
        super().__init__(**options)
        self.auxiliary = auxiliary
        self.labels = labels

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the mean of the class of every code's image."""
        progress(1, 1)
        if len(self.labels) != len(view.codes):
            raise AuditError(
                f"expected a label for each of {len(view.codes)} codes, "
                f"got {len(self.labels)}"
            )
        images, labels = self.auxiliary.images, self.auxiliary.labels
        everything = images.mean(dim=0)  # for a class that the attacker has never seen
        means = {
            label: images[labels == label].mean(dim=0)
            for label in torch.unique(labels).tolist()
        }
        return torch.stack([means.get(y, everything) for y in self.labels.tolist()])


@ATTACKS.register("all-black")
class AllBlack(Reconstructs):
    """Black images: where most pixels are black, their low error means nothing."""

    name = "all-black"
    kind: ClassVar[Kind] = "trivial"
    runs_by_default = True
    needs = ("image_shape",)
    threat_model = "anyone who knows the size of an image; the codes are not read"
    cost = "none"
    facts = PartFacts(
        source="LightSplit", assumes="the size of an image", status="ours"
    )

    def __init__(self, *, image_shape: tuple[int, int, int], **options: Any) -> None:
        super().__init__(**options)
        self.image_shape = image_shape

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return zeros for every code."""
        progress(1, 1)
        return torch.zeros(len(view.codes), *self.image_shape)


@ATTACKS.register("nearest-image")
class NearestImage(Reconstructs):
    """The auxiliary image whose true code is nearest to the victim's."""

    name = "nearest-image"
    kind: ClassVar[Kind] = "trivial"
    runs_by_default = True
    needs = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = "a distance for every victim and pair; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of samples of the same kind",
        status="ours",
    )

    def __init__(self, *, pairs: Pairs, **options: Any) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the nearest image of every code."""
        known = self.pairs.codes.flatten(1)
        chunks = torch.split(view.codes.flatten(1), CHUNK)
        nearest = []
        for done, chunk in enumerate(chunks, start=1):
            nearest.append(torch.cdist(chunk, known).argmin(dim=1))
            progress(done, len(chunks))
        return self.pairs.images[torch.cat(nearest)]


@ATTACKS.register("nearest-known")
class NearestKnown(NearestImage):
    """The known row or text whose true code is nearest to the victim's."""

    name = "nearest-known"
    truths = ("table", "text")
