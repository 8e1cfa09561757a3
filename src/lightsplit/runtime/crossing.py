"""What crosses at the cuts, and how it becomes the rows of a message.

    samples   activation (B, *shape)                ◄──►  a row for each sample
    tokens    activation (B, T, *shape), mask (B, T) ◄──►  a row for each token sent

A codec sees rows and nothing else, so with tokens it acts on each token by itself, and
padding is not sent. The mask travels as the first companion, one byte for each token.
Where a token was not sent, the receiver has zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.errors import CodecError, ProtocolError
from lightsplit.protocol.companions import ROWS, Companion


class Sent(NamedTuple):
    """An activation as rows, and its companions in the order of the contract."""

    rows: Tensor
    companions: tuple[Tensor, ...]


@dataclass(frozen=True)
class Crossing:
    """How activations, outputs and shared inputs travel.

    Attributes:
        share: names of the inputs that the server gets.
        dtypes: of these inputs at the model.
        companions: as the contract describes them; with tokens the first is the mask.
        most_tokens: the longest sequence; 0 where rows are samples.
        output_has_tokens: whether outputs have a row for each token too.
    """

    share: tuple[str, ...] = ()
    dtypes: tuple[torch.dtype, ...] = ()
    companions: tuple[Companion, ...] = ()
    most_tokens: int = 0
    output_has_tokens: bool = False

    @property
    def has_tokens(self) -> bool:
        """Return whether a row is a token."""
        return self.most_tokens > 0

    def terms(self) -> dict[str, object]:
        """Return the terms of a contract that describe this crossing."""
        return {
            "rows": "token" if self.has_tokens else "sample",
            "output_rows": "token" if self.output_has_tokens else "sample",
            "most_tokens": self.most_tokens,
            "companions": tuple(map(str, self.companions)),
        }

    # The client's end.

    def send(self, activation: Tensor, shared: Sequence[Tensor]) -> Sent:
        """Return what a client sends for an activation and its shared inputs."""
        if not self.has_tokens:
            return Sent(activation, self._written(shared))
        self._check_length(activation)
        written = self._written(shared)
        if self.companions[0].name == ROWS:
            mask = torch.ones(activation.shape[:2], dtype=torch.uint8)
            written = (mask.to(activation.device), *written)
        return Sent(_pack(activation, written[0]), written)

    def take(self, rows: Tensor, sent: Sequence[Tensor]) -> Tensor:
        """Return the output that a server's rows are, after ``send``."""
        return _unpack(rows, sent[0]) if self.output_has_tokens else rows

    # The server's end.

    def received(
        self, rows: Tensor, sent: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return activation and shared inputs from rows and companions."""
        if not self.companions:
            return rows, tuple(sent)
        names = [one.name for one in self.companions]
        found = dict(zip(names, sent, strict=True))
        shared = tuple(
            found[name].to(dtype)
            for name, dtype in zip(self.share, self.dtypes, strict=True)
        )
        return (_unpack(rows, sent[0]) if self.has_tokens else rows), shared

    def answered(self, output: Tensor, sent: Sequence[Tensor]) -> Tensor:
        """Return the rows of an output."""
        return _pack(output, sent[0]) if self.output_has_tokens else output

    def _written(self, shared: Sequence[Tensor]) -> tuple[Tensor, ...]:
        found = dict(zip(self.share, shared, strict=True))
        named = [one for one in self.companions if one.name != ROWS]
        return tuple(found[one.name].to(one.dtype) for one in named)

    def _check_length(self, activation: Tensor) -> None:
        tokens = activation.shape[1]
        if tokens > self.most_tokens:
            raise CodecError(
                f"expected sequences of up to {self.most_tokens} tokens, got {tokens}; "
                f"cut them off, or set max_tokens={tokens} at both ends"
            )


SAMPLES = Crossing()


def _pack(tensor: Tensor, mask: Tensor) -> Tensor:
    """Return the tokens (N, *shape) of (B, T, *shape) where the mask is not 0."""
    if tensor.shape[:2] != mask.shape:
        raise CodecError(
            f"expected a mask of {tuple(tensor.shape[:2])}, got {tuple(mask.shape)}"
        )
    return tensor[mask != 0]


def _unpack(rows: Tensor, mask: Tensor) -> Tensor:
    """Return (B, T, *shape) with the tokens in their places and zeros elsewhere."""
    chosen = mask != 0
    if int(chosen.sum()) != len(rows):
        raise ProtocolError(
            f"expected {int(chosen.sum())} tokens by the mask, got {len(rows)}",
            code="wrong-shape",
        )
    whole = rows.new_zeros((*mask.shape, *rows.shape[1:]))
    return whole.index_put((chosen,), rows)
