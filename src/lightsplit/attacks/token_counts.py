"""How often each token occurs in a text, by the best linear guess from its code.

    pairs ─► counts of every token ─► linear MMSE ─► the likeliest tokens, in no order

A head that averages the vectors of words hides their order and hardly anything else:
the average is linear in the counts. A classifier of places does not see that.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import fit_linear
from lightsplit.attacks.view import ServerView
from lightsplit.part_facts import PartFacts
from lightsplit.truths import NOTHING

COPIES = 3  # of one token in a text, at most; a copy needs a higher estimate
MOST_TOKENS = 4096  # the most frequent ones; rarer tokens are never guessed


@ATTACKS.register("token-counts")
class TokenCounts(Reconstructs):
    """The tokens that a linear estimate finds in a text, the likeliest first."""

    name = "token-counts"
    kind: ClassVar[Kind] = "oracle"
    runs_by_default = True
    truths = ("text",)
    needs = ("pairs",)
    threat_model = "a server that was given codes with their samples by a client"
    cost = "one linear system of min(pairs, code size) unknowns; seconds"
    facts = PartFacts(
        source="LightSplit",
        assumes="true codes of texts of the same kind",
        status="ours",
    )

    def __init__(self, *, pairs: Pairs, **options: Any) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return for every code as many tokens as the text is thought to have."""
        tokens = _frequent(self.pairs.images)
        counts = _counts(self.pairs.images, tokens)
        estimate = fit_linear(self.pairs.codes, counts, seed=self.seed)(view.codes)
        progress(1, 1)
        length = self.pairs.images.shape[1]
        copies = torch.cat([estimate - copy for copy in range(COPIES)], dim=1)
        best = copies.topk(min(length, copies.shape[1]), dim=1).indices
        guesses = estimate.new_full((len(estimate), length), NOTHING).long()
        guesses[:, : best.shape[1]] = tokens[best % len(tokens)]
        long = estimate.sum(dim=1).round().clamp(1, length)
        is_over = torch.arange(length, device=long.device) >= long[:, None]
        return guesses.masked_fill(is_over, NOTHING)


def _frequent(texts: Tensor) -> Tensor:
    found, counts = torch.unique(texts[texts != NOTHING], return_counts=True)
    order = counts.argsort(descending=True, stable=True)[:MOST_TOKENS]
    tokens: Tensor = found[order]
    return tokens


def _counts(texts: Tensor, tokens: Tensor) -> Tensor:
    """Return how often each token occurs in each text (M, V)."""
    place = {token: number for number, token in enumerate(tokens.tolist())}
    found = torch.zeros(len(texts), len(tokens))
    for row, text in enumerate(texts.tolist()):
        for token in text:
            if token in place:
                found[row, place[token]] += 1
    return found.to(texts.device)
