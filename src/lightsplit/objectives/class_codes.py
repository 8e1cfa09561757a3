"""Class codes: each class has a fixed codeword of ±1, and latents point to theirs.

    cross-entropy of s · (cos(h, C_c) − m · [c is the label])      over the classes c

h is the code before rounding and C_c the codeword of class c. The margin m makes a
latent come nearer to its own codeword than needed to be right. The codewords are the
best of many random books: those of which the two nearest are farthest apart. They are
no secret; every client draws the same.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from lightsplit import seeding
from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Objective
from lightsplit.objectives.bits import check_classes, one_hot
from lightsplit.part_facts import PartFacts

MOST_BOOKS = 2000
_MOST_PRODUCTS = 2e9  # multiplications to spend on the search for a book


@OBJECTIVES.register("class-codes")
class ClassCodes(Objective):
    """Pulls codes to the codeword of their class, and away from the others.

    Args:
        codec: the codec of the front cut.
        classes: number of classes.
        scale: factor s of the cosines; default: 8.
        margin: margin m; default: 0.2.
    """

    name = "class-codes"
    facts = PartFacts(
        source="LightSplit; common in hashing",
        assumes="labels that are classes; a row per sample",
        client_cost="Ck multiplications per sample",
        attacker="knows the codewords: gets the class, little beyond",
        status="ours",
    )
    words: Tensor

    def __init__(
        self,
        codec: Codec,
        classes: int | None,
        *,
        scale: float = 8.0,
        margin: float = 0.2,
    ) -> None:
        super().__init__()
        count = check_classes(self.name, classes)
        if not codec.is_sample_wise:
            raise ConfigError(
                f"class-codes needs one code per sample; codec {codec.name!r} mixes "
                "samples"
            )
        if not (scale > 0 and 0 <= margin <= 1):
            raise ConfigError(
                "class-codes needs a scale above 0 and a margin from 0 to 1, got "
                f"{scale} and {margin}"
            )
        self.scale = scale
        self.margin = margin
        self.classes = count
        book = draw_book(count, codec.code_size)
        self.register_buffer("words", normalize(book, dim=1), persistent=False)

    def forward(self, view: ClientView) -> Tensor:
        """Return the cross-entropy of the scaled cosines of one batch."""
        latent = normalize(view.latent.flatten(1), dim=1)
        own = one_hot(view.labels, self.classes)
        cosines = latent @ self.words.T
        return cross_entropy(
            self.scale * (cosines - self.margin * own), view.labels.long()
        )


def draw_book(classes: int, length: int) -> Tensor:
    """Return a codeword of ±1 for each class (classes, length)."""
    if 2**length < classes:
        raise ConfigError(
            f"{classes} classes need codewords of at least "
            f"{(classes - 1).bit_length()} bits, got {length}"
        )
    tries = int(_MOST_PRODUCTS / (classes * classes * length))
    best = _Book(torch.empty(0), (-1.0, 0.0))
    with seeding.scope(0, "class codes", classes, length):
        for _ in range(max(10, min(MOST_BOOKS, tries))):
            best = max(best, _draw(classes, length), key=lambda book: book.quality)
    if best.quality[0] <= 0:  # every try had a word twice: count in binary instead
        places = torch.arange(length).clamp(max=62)
        return ((torch.arange(classes).unsqueeze(1) >> places) & 1) * 2.0 - 1
    return best.words


class _Book(NamedTuple):
    words: Tensor
    quality: tuple[float, float]  # least and mean distance between two words


def _draw(classes: int, length: int) -> _Book:
    words = torch.randint(2, (classes, length)) * 2.0 - 1
    distances = (length - words @ words.T) / 2
    others = distances[~torch.eye(classes, dtype=torch.bool)]
    if not len(others):
        return _Book(words, (float(length), float(length)))
    return _Book(words, (others.min().item(), others.mean().item()))
