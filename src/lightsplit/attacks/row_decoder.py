"""The network that turns codes into rows of a table.

    code ─┬─ linear MMSE of the row ────────────────────────────┬─ + ─► row
          └─ standardised, with the estimate ─► dense layers ───┘

The linear estimate is fitted first; the layers learn what it leaves.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_stems import CrossFitted, Standardise
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import cross_fit

NEURONS = 4  # of a layer, times the width


def build_row_decoder(
    pairs: Pairs, *, width: int, blocks: int, seed: int
) -> "RowDecoder":
    """Return an untrained decoder for codes and rows like those of ``pairs``."""
    return RowDecoder(pairs, width=NEURONS * width, blocks=blocks, seed=seed)


class RowDecoder(CodeDecoder):
    """A linear estimate and dense layers that correct it."""

    score_name = "R²"
    of_pairs: Tensor

    def __init__(self, pairs: Pairs, *, width: int, blocks: int, seed: int) -> None:
        super().__init__()
        flat = pairs.codes.flatten(1)
        estimate = cross_fit(flat, pairs.images, seed=seed)
        self.register_buffer("of_pairs", estimate.folds)
        self.linear = CrossFitted(estimate)
        self.standardise = Standardise(flat)
        values = pairs.images.shape[1]
        self.first = nn.Linear(flat.shape[1] + values, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.last = nn.Linear(width, values)
        nn.init.zeros_(self.last.weight)  # begin with the linear estimate itself
        nn.init.zeros_(self.last.bias)

    @property
    def folds(self) -> Tensor:
        """The fold of each pair."""
        return self.of_pairs

    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return rows (B, F)."""
        flat = codes.flatten(1)
        estimate: Tensor = self.linear(flat, folds)
        features = torch.relu(
            self.first(torch.cat([self.standardise(flat), estimate], dim=1))
        )
        for block in self.blocks:
            features = features + torch.relu(block(features))
        correction: Tensor = self.last(features)
        return estimate + correction

    def loss(self, output: Tensor, truth: Tensor) -> Tensor:
        """Return the squared error."""
        return mse_loss(output, truth)

    def score(self, guesses: Tensor, truth: Tensor) -> float:
        """Return R² over all values."""
        spread = (truth - truth.mean(dim=0)).square().sum().clamp_min(1e-12)
        return 1 - float((guesses - truth).square().sum() / spread)
