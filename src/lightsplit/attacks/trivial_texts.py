"""Guesses of texts that learn nothing from codes: frequencies of tokens.

frequent-token      the most frequent token, at every place of every text
frequent-by-place   the most frequent token of each place
unigram             the most frequent tokens, as many as an average text has
"""

from typing import Any, ClassVar

import torch
from torch import Tensor

from lightsplit.attacks.base import ATTACKS, Kind, Progress, silent
from lightsplit.attacks.capabilities import Reconstructs
from lightsplit.attacks.knowledge import LabelledImages
from lightsplit.attacks.view import ServerView
from lightsplit.errors import AuditError
from lightsplit.part_facts import PartFacts
from lightsplit.truths import NOTHING


class _Frequencies(Reconstructs):
    """The same text for everyone."""

    kind: ClassVar[Kind] = "trivial"
    runs_by_default = True
    truths = ("text",)
    needs = ("auxiliary",)
    threat_model = "anyone who has texts of the same kind; the codes are not read"
    cost = "none"
    facts = PartFacts(
        source="LightSplit", assumes="texts of the same kind", status="ours"
    )

    def __init__(self, *, auxiliary: LabelledImages, **options: Any) -> None:
        super().__init__(**options)
        self.texts = auxiliary.images

    def reconstruct(self, view: ServerView, progress: Progress = silent) -> Tensor:
        """Return the same text for every code."""
        progress(1, 1)
        return self.text().expand(len(view.codes), -1).clone()

    def text(self) -> Tensor:
        """Return the text to guess (T,)."""
        raise NotImplementedError


@ATTACKS.register("frequent-token")
class FrequentToken(_Frequencies):
    """The most frequent token everywhere."""

    name = "frequent-token"

    def text(self) -> Tensor:
        """Return one token, repeated."""
        return most_frequent(self.texts).expand(self.texts.shape[1])


@ATTACKS.register("frequent-by-place")
class FrequentByPlace(_Frequencies):
    """The most frequent token of each place."""

    name = "frequent-by-place"

    def text(self) -> Tensor:
        """Return a token for each place; one that is always empty has the commonest."""
        anywhere = most_frequent(self.texts)
        places = self.texts.unbind(dim=1)
        return torch.stack(
            [most_frequent(p) if (p != NOTHING).any() else anywhere for p in places]
        )


@ATTACKS.register("unigram")
class Unigram(_Frequencies):
    """The most frequent tokens, each once: the best blind guess of a bag of tokens."""

    name = "unigram"

    def text(self) -> Tensor:
        """Return as many tokens as the attacker's texts have on average."""
        is_token = self.texts != NOTHING
        found, counts = torch.unique(self.texts[is_token], return_counts=True)
        length = round(float(is_token.sum(dim=1).double().mean()))
        best = found[counts.argsort(descending=True, stable=True)[:length]]
        text = self.texts.new_full((self.texts.shape[1],), NOTHING)
        text[: len(best)] = best
        return text


def most_frequent(tokens: Tensor) -> Tensor:
    """Return the most frequent token, of several the smallest; padding is none."""
    real = tokens[tokens != NOTHING]
    if not len(real):
        raise AuditError("the attacker's texts have no tokens")
    found, counts = torch.unique(real, return_counts=True)
    token: Tensor = found[counts.argmax()]
    return token
