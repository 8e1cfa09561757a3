"""What an honest-but-curious server holds, and all that an attack is given.

    exchanges   every request that reached the server, with the reply it got
    weights     the server's own weights, as they were at some steps
    contract    what both sides agreed on
    codec       built from the contract: a fixed projection is the client's very own,
                the weights of a learned encoder are fresh ones
    formats     how the numbers of each message are written

Rows are samples, in the order in which they were sent, as the server reads them: what
a wire format has rounded away is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from lightsplit.codecs import Code, Codec, Layout, OutputCodec, TensorSpec
from lightsplit.errors import AuditError
from lightsplit.formats import Stamp, WireFormats
from lightsplit.protocol import (
    STEP_KINDS,
    CodeGradient,
    CodeMessage,
    Contract,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
)


class Exchange(NamedTuple):
    """A request and its reply."""

    request: Request
    reply: Reply


class Snapshot(NamedTuple):
    """The server's weights after so many steps."""

    step: int
    state: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class ServerView:
    """The messages that a server received and sent, its weights and the contract."""

    contract: Contract
    codec: Codec
    exchanges: tuple[Exchange, ...]
    weights: tuple[Snapshot, ...] = ()
    output_codec: OutputCodec | None = None
    formats: WireFormats = field(default_factory=WireFormats)

    @property
    def codes(self) -> Tensor:
        """The codes that came outside training, one row per sample (N, …)."""
        return torch.cat([readable(self.codec, code) for code in self.coded_batches])

    @property
    def coded_batches(self) -> list[Code]:
        """The same batch by batch, as the server's decoder takes them."""
        batches = [
            read_code(request, self.codec, self.formats)
            for request, _ in self.exchanges
            if isinstance(request, CodeMessage) and not request.is_training
        ]
        if not batches:
            raise AuditError("the view holds no code that was sent outside training")
        return batches

    @property
    def recorded_kinds(self) -> tuple[str, ...]:
        """Which of the four messages of a step there are: vanilla has only two."""
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
        rows = [
            self._tensor(message)
            for exchange in self.exchanges
            if _is_training(exchange)
            for message in exchange
            if message.kind == kind
        ]
        if not rows:
            raise AuditError(f"the view holds no {kind} of a training step")
        return torch.cat(rows)

    def _tensor(self, message: Request | Reply) -> Tensor:
        """Return a message of a training step as its receiver reads it."""
        if isinstance(message, CodeMessage):
            return readable(self.codec, read_code(message, self.codec, self.formats))
        stamp = Stamp(message.kind, message.client, message.step)
        if isinstance(message, OutputMessage):
            plain = self._output_layout(len(message.output.values))
            return self.formats.read(stamp, message.output, plain).values
        codec = self.codec if isinstance(message, CodeGradient) else self.output_codec
        written, rows = message.written, len(message.gradient)
        values = (
            TensorSpec(tuple(message.gradient.shape))
            if codec is None
            else codec.layout(rows).values
        )
        return self.formats.read_gradient(stamp, codec, written, values)

    def _output_layout(self, rows: int) -> Layout | None:
        return None if self.output_codec is None else self.output_codec.layout(rows)


def read_code(message: CodeMessage, codec: Codec, formats: WireFormats) -> Code:
    """Return the code of a message as the server reads it."""
    check_sample_wise(codec)
    stamp = Stamp(message.kind, message.client, message.step, message.is_training)
    return formats.read(stamp, message.code, codec.layout(len(message.code.values)))


def readable(codec: Codec, code: Code) -> Tensor:
    """Return a code as one tensor with a row per sample.

    Side information (which values were kept, say) is no secret: such a code is laid out
    as an activation, as the server does it.
    """
    check_sample_wise(codec)
    tensor: Tensor = codec.decoder(code) if code.side else code.values
    return tensor


def check_sample_wise(codec: Codec) -> None:
    """Refuse a codec whose codes have no row per image."""
    if not codec.is_sample_wise:
        raise AuditError(f"codec {codec.name!r} mixes samples: no row is one image's")


def _is_training(exchange: Exchange) -> bool:
    request = exchange.request
    return isinstance(request, OutputGradient) or request.is_training
