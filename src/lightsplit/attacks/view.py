"""The view of an honest-but-curious server; an attack gets nothing else.

    exchanges   every request that reached the server, with its reply
    weights     the server's own weights at some steps
    contract    the terms that both sides agreed on
    wire        built from the contract: it reads the messages as the server does; a
                fixed projection is the client's own, but the weights of a learned
                encoder are new ones

Rows are samples in the order in which they were sent. They hold the numbers that the
server reads, after rounding to a wire format.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec
from lightsplit.errors import AuditError
from lightsplit.protocol import (
    STEP_KINDS,
    CodeMessage,
    Contract,
    OutputGradient,
    Reply,
    Request,
    Wire,
)


class Exchange(NamedTuple):
    """A request and its reply."""

    request: Request
    reply: Reply


class Snapshot(NamedTuple):
    """The server's weights after ``step`` steps."""

    step: int
    state: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class ServerView:
    """Messages that a server received and sent, its weights, contract and wire.

    Attributes:
        attacked_steps: the training steps whose codes are attacked; by default those
            codes are that came outside training.
    """

    contract: Contract
    wire: Wire
    exchanges: tuple[Exchange, ...]
    weights: tuple[Snapshot, ...] = ()
    attacked_steps: tuple[int, ...] = ()

    @property
    def codec(self) -> Codec:
        """The codec of the front cut, as the server knows it."""
        return self.wire.codec

    @property
    def codes(self) -> Tensor:
        """The codes under attack, one row per sample (N, …)."""
        return torch.cat([readable(self.codec, code) for code in self.coded_batches])

    @property
    def coded_batches(self) -> list[Code]:
        """The same codes batch by batch, as the server's decoder takes them."""
        batches = [
            read_code(request, self.wire)
            for request, _ in self.exchanges
            if isinstance(request, CodeMessage) and self._is_attacked(request)
        ]
        if not batches:
            raise AuditError("the view holds no code that was sent outside training")
        return batches

    def _is_attacked(self, request: CodeMessage) -> bool:
        if self.attacked_steps:
            return request.is_training and request.step in self.attacked_steps
        return not request.is_training

    @property
    def recorded_kinds(self) -> tuple[str, ...]:
        """The kinds of messages in the training steps; vanilla has two of the four."""
        found = {
            message.kind
            for exchange in self.exchanges
            if _is_training(exchange)
            for message in exchange
        }
        return tuple(kind for kind in STEP_KINDS if kind in found)

    def training_messages(self, kind: str) -> Tensor:
        """Return one of the four messages of all training steps, a row per sample."""
        if kind not in STEP_KINDS:
            known = ", ".join(STEP_KINDS)
            raise AuditError(f"unknown message {kind!r}; known: {known}")
        if kind == "code_gradient":
            check_sample_wise(self.codec)
        rows = [
            self.wire.rows(message)
            for exchange in self.exchanges
            if _is_training(exchange)
            for message in exchange
            if message.kind == kind
        ]
        if not rows:
            raise AuditError(f"the view holds no {kind} of a training step")
        return torch.cat(rows)


def read_code(message: CodeMessage, wire: Wire) -> Code:
    """Return the code of a message as the server reads it."""
    return wire.read_code(message)


def readable(codec: Codec, code: Code) -> Tensor:
    """Return a code as one tensor with a row per sample.

    Side information is not secret, so a code that has some is decoded first. A codec
    that mixes samples makes one code of a batch; the server's own decoder separates the
    samples as well as it can, and the attacker starts from there.
    """
    return codec.rows(code)


def check_sample_wise(codec: Codec) -> None:
    """Refuse a codec whose code gradients have no row per sample."""
    if not codec.is_sample_wise:
        raise AuditError(
            f"codec {codec.name!r} mixes samples: no row of a code gradient belongs to "
            "one image"
        )


def _is_training(exchange: Exchange) -> bool:
    request = exchange.request
    return isinstance(request, OutputGradient) or request.is_training
