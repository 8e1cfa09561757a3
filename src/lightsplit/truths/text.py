"""Texts: a token at every place, or nothing where a short text is padded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from lightsplit.errors import AuditError, ConfigError
from lightsplit.truths.base import Truth

NOTHING = -1  # in place of a token, where a text is padded
MASK = "attention_mask"


@dataclass(frozen=True)
class TextTruth(Truth):
    """Texts of at most ``length`` tokens.

    Attributes:
        length: of every sample, padding included.
        padding: the token that fills short texts.
        ids: the name of the tokens among the inputs.
        read: turns tokens into a text for readers; without it they are numbers.
    """

    kind: ClassVar[str] = "text"
    things: ClassVar[str] = "texts"
    telling: ClassVar[tuple[str, ...]] = ("token_accuracy", "token_f1")

    length: int
    padding: int = 0
    ids: str = "input_ids"
    read: Callable[[Sequence[int]], str] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of places in a text."""
        return (self.length,)

    def samples(self, inputs: Any) -> Tensor:
        """Return the tokens (N, T), NOTHING where a text is padded."""
        tokens = inputs.get(self.ids) if isinstance(inputs, Mapping) else inputs
        if not isinstance(tokens, Tensor) or tokens.is_floating_point():
            raise ConfigError(f"expected tokens as whole numbers under {self.ids!r}")
        is_padding = tokens == self.padding
        if isinstance(inputs, Mapping) and MASK in inputs:
            is_padding = inputs[MASK] == 0
        return tokens.long().masked_fill(is_padding, NOTHING)

    def inputs(self, samples: Tensor) -> Any:
        """Raise AuditError: nobody can go down a slope from token to token."""
        del samples
        raise AuditError("tokens have no gradient, so a head of texts is not inverted")

    def text(self, tokens: Tensor) -> str:
        """Return one text as a reader has it."""
        found = [one for one in tokens.tolist() if one != NOTHING]
        return " ".join(map(str, found)) if self.read is None else self.read(found)
