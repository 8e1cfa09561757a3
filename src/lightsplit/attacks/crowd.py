"""Samples, some of which were trained on, as they pass the server once more.

samples of recorded training steps ─┐
                                    ├─ shuffled ─► predicted ─► codes, outputs
samples that nobody trained on ─────┘
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError

CODE, OUTPUT, SAMPLES = "code", "output", "samples"


@dataclass(frozen=True, eq=False)
class Crowd:
    """A crowd as the server sees it, and what an attacker may know about it.

    Attributes:
        view: of their predictions.
        samples: the samples (N, …), for an attacker who suspects them.
        known_rows: the half whose membership an attacker may know.
        known_members: whether these were trained on.
    """

    view: ServerView
    samples: Tensor
    known_rows: Tensor
    known_members: Tensor

    @property
    def sources(self) -> Sequence[str]:
        """The messages of a prediction that an attacker reads."""
        return (CODE, OUTPUT)

    def rows(self, source: str) -> Tensor:
        """Return one flat float32 row per sample, of a message or the samples."""
        if source == CODE:
            return self.view.codes.flatten(1).float().cpu()
        if source == SAMPLES:
            return self.samples.flatten(1).float().cpu()
        if source != OUTPUT:
            raise AuditError(f"a prediction is a code and an output, got {source!r}")
        wire = self.view.wire
        replies = [wire.rows(reply) for _, reply in self.view.exchanges]
        return torch.cat(replies).flatten(1).float().cpu()

    @property
    def unknown(self) -> Tensor:
        """The rows whose membership an attacker has to guess."""
        is_unknown = torch.ones(len(self.samples), dtype=torch.bool)
        is_unknown[self.known_rows] = False
        return is_unknown.nonzero().flatten()
