"""The network that turns codes into tokens: a classifier at every place of a text.

    code ─┬─ a vector at every place, if the code or the activation has one ─┐
          ├─ a vector of the whole code ─────────────────────────────────────┼─► token
          └─ which place it is ──────────────────────────────────────────────┘

Where a code has a row for each token this inverts an embedding. A code without places
is first lifted to the activation by its linear estimate, if that has places.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_stems import CrossFitted, Standardise
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import cross_fit

NEURONS = 4  # of a layer, times the width
MOST_TOKENS = 4096  # the most frequent ones; rarer tokens are never guessed
UNKNOWN = -100  # the class of those, which the loss leaves out


def build_token_decoder(
    pairs: Pairs, *, width: int, blocks: int, seed: int
) -> "TokenDecoder":
    """Return an untrained decoder for codes and tokens like those of ``pairs``."""
    return TokenDecoder(pairs, width=NEURONS * width, blocks=blocks, seed=seed)


class TokenDecoder(CodeDecoder):
    """A classifier of the token at every place, shared by all places."""

    score_name = "accuracy of tokens"
    tokens: Tensor
    of_pairs: Tensor

    def __init__(self, pairs: Pairs, *, width: int, blocks: int, seed: int) -> None:
        super().__init__()
        self.length = pairs.images.shape[1]
        flat = pairs.codes.flatten(1)
        self.register_buffer("tokens", self._known(pairs.images))
        self.register_buffer("of_pairs", torch.zeros(len(flat), dtype=torch.int64))
        self.lift: CrossFitted | None = None
        if not self._has_places(pairs.codes) and self._has_places(pairs.activations):
            fit = cross_fit(flat, pairs.activations, seed=seed)
            self.of_pairs, self.lift = fit.folds, CrossFitted(fit)
        placed = pairs.activations if self.lift else pairs.codes
        self.at_places = _AtPlaces(placed, width) if self._has_places(placed) else None
        self.standardise = Standardise(flat)
        self.whole = nn.Linear(flat.shape[1], width)
        self.place = nn.Embedding(self.length, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.last = nn.Linear(width, len(self.tokens))

    @property
    def folds(self) -> Tensor:
        """The fold of each pair."""
        return self.of_pairs

    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return a score for every known token at every place (B, T, V)."""
        flat = codes.flatten(1)
        features = self.whole(self.standardise(flat))[:, None] + self.place.weight
        if self.at_places is not None:
            placed = codes if self.lift is None else self.lift(flat, folds)
            features = features + self.at_places(placed)
        features = torch.relu(features)
        for block in self.blocks:
            features = features + torch.relu(block(features))
        scores: Tensor = self.last(features)
        return scores

    def loss(self, output: Tensor, truth: Tensor) -> Tensor:
        """Return the cross-entropy of the tokens that can be guessed."""
        return cross_entropy(
            output.flatten(0, 1), self._classes(truth).flatten(), ignore_index=UNKNOWN
        )

    def guess(self, output: Tensor) -> Tensor:
        """Return the likeliest token of every place."""
        return self.tokens[output.argmax(dim=2)]

    def score(self, guesses: Tensor, truth: Tensor) -> float:
        """Return the share of right tokens, padding left out."""
        is_token = truth >= 0
        return float((guesses == truth)[is_token].double().mean())

    def _known(self, samples: Tensor) -> Tensor:
        """Return the tokens to choose from, sorted."""
        found, counts = torch.unique(samples, return_counts=True)
        if len(found) > MOST_TOKENS:
            self.notes.append(
                f"the decoder chooses from the {MOST_TOKENS:,} most frequent of "
                f"{len(found):,} known tokens"
            )
        order = counts.argsort(descending=True, stable=True)[:MOST_TOKENS]
        known: Tensor = found[order].sort().values
        return known

    def _classes(self, truth: Tensor) -> Tensor:
        places = torch.searchsorted(self.tokens, truth.contiguous())
        places = places.clamp_max(len(self.tokens) - 1)
        return places.where(self.tokens[places] == truth, UNKNOWN)

    def _has_places(self, rows: Tensor) -> bool:
        return rows.ndim == 3 and rows.shape[1] == self.length


class _AtPlaces(nn.Module):
    """Vectors (B, T, D) to features of every place."""

    def __init__(self, rows: Tensor, width: int) -> None:
        super().__init__()
        self.standardise = Standardise(rows.flatten(0, 1))
        self.spread = nn.Linear(rows.shape[2], width)

    def forward(self, rows: Tensor) -> Tensor:
        """Return (B, T, width)."""
        features: Tensor = self.spread(self.standardise(rows))
        return features
