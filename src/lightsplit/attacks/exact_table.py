"""A table from every code that occurs to the mean of its images.

    pairs ─► distinct codes ─► mean image of each
    code ──► its row of the table, or the row of the nearest known code

For a code of few bits this is all that can be learnt: no function of the code has a
lower mean squared error than the mean of the images with that code. Where every code is
different, as with floating-point codes, a row is one image, and the attack is the
nearest known image.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts

CHUNK = 256  # codes whose distances are in memory at a time


@ATTACKS.register("exact-table")
class ExactTable(Reconstructs):
    """The mean of all known images with the same code.

    Attributes:
        exemplar: whether to return, in place of the mean, the known image nearest to
            the mean: sharper, with a higher squared error.
    """

    name = "exact-table"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    truths = ("image", "table")
    needs = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = "a distance for every victim and distinct code; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of samples of the same kind",
        status="ours",
    )

    def __init__(self, *, pairs: Pairs, exemplar: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.pairs = pairs
        self.exemplar = exemplar

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the image in the table for every code."""
        flat = self.pairs.codes.flatten(1)
        known, row_of = torch.unique(flat, dim=0, return_inverse=True)
        table = self._table(row_of, len(known))
        chunks = torch.split(view.codes.flatten(1), CHUNK)
        rows, is_known = [], 0
        for done, chunk in enumerate(chunks, start=1):
            distances, nearest = _distances(chunk, known).min(dim=1)
            rows.append(nearest)
            is_known += int((distances == 0).sum())
            progress(done, len(chunks))
        self.notes.append(
            f"{len(known):,} distinct codes of {len(flat):,} images; {is_known:,} of "
            f"{len(view.codes):,} codes were in the table"
        )
        return table[torch.cat(rows)]

    def _table(self, row_of: Tensor, count: int) -> Tensor:
        """Return the mean image of each distinct code, or the image nearest to it."""
        images = self.pairs.images
        sums = images.new_zeros(count, *images.shape[1:]).index_add_(0, row_of, images)
        members = torch.bincount(row_of, minlength=count)
        means = sums / members.view(-1, *(1 for _ in images.shape[1:]))
        if not self.exemplar:
            return means
        distance = (images - means[row_of]).flatten(1).square().sum(dim=1)
        order = torch.argsort(distance, descending=True)  # the nearest is written last
        chosen = torch.empty_like(members)
        chosen[row_of[order]] = order
        return images[chosen]


def _distances(some: Tensor, others: Tensor) -> Tensor:
    """Return Euclidean distances that are exactly zero between equal rows."""
    return torch.cdist(some, others, compute_mode="donot_use_mm_for_euclid_dist")
