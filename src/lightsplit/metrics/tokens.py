"""Metrics of texts: tokens (N, T) against the original ones, −1 where there is none.

    token_accuracy    share of the text's places whose token is right
    token_f1          tokens in common, wherever they stand: 2 · common / (both lengths)
    text_reidentification   whether the text that agrees most is the own original

Padding counts for nothing. A bag of words hides where a token stood; ``token_f1`` still
sees that it was there.
"""

from collections import Counter

import torch
from torch import Tensor

from lightsplit.metrics.base import checked_tokens, scored_as

TEXT = ("text",)
NOTHING = -1
CHUNK = 64  # texts compared with all originals at a time


@scored_as("token_accuracy", higher_is_better=True, span=(0.0, 1.0), kinds=TEXT)
def token_accuracy(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the share of each text's tokens that are right and in place.

    Example:
        >>> token_accuracy(torch.tensor([[5, 7, 9]]), torch.tensor([[5, 8, -1]]))
        tensor([0.5000])
    """
    reconstructions, originals = checked_tokens(reconstructions, originals)
    is_token = originals != NOTHING
    right = ((reconstructions == originals) & is_token).sum(1)
    return right / is_token.sum(1).clamp_min(1)


@scored_as("token_f1", higher_is_better=True, span=(0.0, 1.0), kinds=TEXT)
def token_f1(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return how many tokens each text shares with its original, in any order.

    Example:
        >>> token_f1(torch.tensor([[7, 5, -1]]), torch.tensor([[5, 8, -1]]))
        tensor([0.5000])
    """
    reconstructions, originals = checked_tokens(reconstructions, originals)
    pairs = zip(reconstructions.tolist(), originals.tolist(), strict=True)
    return torch.tensor([_f1(_bag(guess), _bag(truth)) for guess, truth in pairs])


@scored_as(
    "text_reidentification",
    higher_is_better=True,
    span=(0.0, 1.0),
    kinds=TEXT,
    needs_all_images=True,
)
def text_reidentification(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the chance of naming each text's own original, the one it agrees with.

    Originals that agree equally well share the chance, unless they are the same text.
    """
    reconstructions, originals = checked_tokens(reconstructions, originals)
    texts, own = torch.unique(originals, dim=0, return_inverse=True)
    found = []
    for guesses, mine in zip(
        torch.split(reconstructions, CHUNK), torch.split(own, CHUNK), strict=True
    ):
        is_token = texts != NOTHING
        agree = ((guesses[:, None] == texts) & is_token).sum(2) / is_token.sum(1)
        best = agree == agree.amax(1, keepdim=True)
        hit = best.gather(1, mine[:, None])[:, 0]
        found.append(hit / best.sum(1))
    return torch.cat(found)


def _bag(tokens: list[int]) -> Counter[int]:
    return Counter(token for token in tokens if token != NOTHING)


def _f1(guess: Counter[int], truth: Counter[int]) -> float:
    both = guess.total() + truth.total()
    return 2 * (guess & truth).total() / both if both else 1.0
