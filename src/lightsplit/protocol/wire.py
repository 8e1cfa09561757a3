"""The wire: codec, output codec and formats together.

    sender     Code or gradient ──write──► message
    receiver   message ──read──► Code or gradient
    planner    kind and number of rows ──layout──► shapes, types and bytes

Both ends of a run hold an equal wire. An audit or a detector reads messages with the
same wire, and so it sees the numbers that the receiver sees.
"""

from typing import NamedTuple

from torch import Tensor

from lightsplit.codecs import Code, Codec, Layout, TensorSpec
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.formats import Stamp, WireFormats
from lightsplit.protocol.messages import (
    CodeGradient,
    CodeMessage,
    Noted,
    OutputGradient,
    OutputMessage,
    Recall,
    Release,
    Reply,
    Request,
    Share,
    Total,
    detached,
)

_AT_FRONT_CUT = (CodeMessage.kind, CodeGradient.kind)


class StepId(NamedTuple):
    """The step that a message belongs to."""

    client: int
    step: int
    is_training: bool = True


class Wire:
    """Writes, reads and measures the four messages of a step.

    Args:
        codec: of the front cut.
        output_codec: of the back cut; None where the output is sent whole, in a shape
            that only the backbone knows.
        formats: how numbers are written; without it fp32.
    """

    def __init__(
        self,
        codec: Codec,
        output_codec: Codec | None = None,
        formats: WireFormats | None = None,
    ) -> None:
        self.codec = codec
        self.output_codec = output_codec
        self.formats = formats or WireFormats()

    def write_code(
        self,
        at: StepId,
        code: Code,
        labels: Tensor | None = None,
        companions: tuple[Tensor, ...] = (),
    ) -> CodeMessage:
        """Return the message that carries a code, with its labels if vanilla."""
        packed = self.codec.pack(detached(code))
        written = self.formats.write(Stamp(CodeMessage.kind, *at), packed)
        return CodeMessage(
            at.client, at.step, written, labels, at.is_training, companions
        )

    def read_code(self, message: CodeMessage) -> Code:
        """Return the code that a message carries."""
        at = StepId(message.client, message.step, message.is_training)
        code = self.codec.unpack(self._read_forward(message.kind, at, message.code))
        labels, samples = message.labels, self.codec.samples(code)
        if labels is not None and len(labels) != samples:
            raise ProtocolError(
                f"expected {samples} labels, one for each sample of the code, "
                f"got {len(labels)}"
            )
        return code

    def write_release(self, at: StepId, first: int, code: Code) -> Release:
        """Return the message that carries codes of samples from number ``first`` on."""
        written = self.write_code(at, code).code
        return Release(at.client, at.step, first, written, at.is_training)

    def read_release(self, message: Release) -> Code:
        """Return the codes that a message carries."""
        at = StepId(message.client, message.step, message.is_training)
        return self.codec.unpack(self._read_forward(CodeMessage.kind, at, message.code))

    def as_received(self, code: Code) -> Code:
        """Return a code as the server reads it outside training."""
        return self.read_code(self.write_code(StepId(0, 0, is_training=False), code))

    def write_output(self, at: StepId, output: Code) -> OutputMessage:
        """Return the message that carries an output."""
        written = self.formats.write(Stamp(OutputMessage.kind, *at), detached(output))
        return OutputMessage(at.client, at.step, written)

    def read_output(self, message: OutputMessage, *, is_training: bool = True) -> Code:
        """Return the output that a message carries."""
        at = StepId(message.client, message.step, is_training)
        return self._read_forward(message.kind, at, message.output)

    def write_output_gradient(self, at: StepId, gradient: Tensor) -> OutputGradient:
        """Return the message that carries the gradient at an output."""
        written = self._write_gradient(OutputGradient.kind, at, gradient)
        return OutputGradient(at.client, at.step, written.values, written.side)

    def read_output_gradient(
        self, message: OutputGradient, output: Tensor | None = None
    ) -> Tensor:
        """Return the gradient at ``output``; see ``read_code_gradient``."""
        return self._read_gradient(message, output)

    def write_code_gradient(
        self, at: StepId, gradient: Tensor, loss: float | None = None
    ) -> CodeGradient:
        """Return the message that carries the gradient at a code."""
        written = self._write_gradient(CodeGradient.kind, at, gradient)
        return CodeGradient(at.client, at.step, written.values, loss, written.side)

    def read_code_gradient(
        self, message: CodeGradient, values: Tensor | None = None
    ) -> Tensor:
        """Return the gradient at a code.

        Args:
            message: that carries it.
            values: of the code. An observer who does not have them leaves them out;
                then the codec tells their shape from the number of rows.
        """
        return self._read_gradient(message, values)

    def rows(self, message: Request | Reply) -> Tensor:
        """Return a message of a training step as one tensor with a row per sample."""
        if isinstance(message, CodeMessage):
            return self.codec.rows(self.read_code(message))
        if isinstance(message, OutputMessage):
            return self.read_output(message).values
        if isinstance(message, Release):
            return self.codec.rows(self.read_release(message))
        if isinstance(message, Recall | Noted | Share | Total):
            raise ProtocolError(f"a {message.kind} holds no row of a sample")
        return self._read_gradient(message)

    def layout(self, kind: str, rows: int) -> Layout:
        """Return what a message of ``kind`` about ``rows`` samples puts on the wire."""
        codec = self._codec(kind)
        if codec is None:
            raise ConfigError(
                f"the layout of the {kind} needs an output codec, this wire has none"
            )
        if kind in (OutputGradient.kind, CodeGradient.kind):
            plain = codec.gradient_layout(codec.layout(rows).values)
        else:
            plain = codec.packed_layout(rows)
        return self.formats.layout(kind, plain)

    def check_readable(self, *kinds: str) -> None:
        """Refuse int4 for messages whose layout their receiver cannot know."""
        for kind in kinds:
            is_packed = self.formats.format(kind).name == "int4"
            if is_packed and self._plain_layout(kind, 1) is None:
                raise ConfigError(
                    f"int4 packs the rows of the {kind}, so the receiver must know how "
                    "long a row is: use a codec there with one row per sample, or "
                    "another format"
                )

    def _codec(self, kind: str) -> Codec | None:
        return self.codec if kind in _AT_FRONT_CUT else self.output_codec

    def _plain_layout(self, kind: str, rows: int) -> Layout | None:
        """Return the layout before writing; None where rows do not determine it."""
        codec = self._codec(kind)
        if codec is None or not codec.is_sample_wise:
            return None
        return codec.layout(rows)

    def _read_forward(self, kind: str, at: StepId, written: Code) -> Code:
        codec, plain = self._codec(kind), None
        if codec is not None and codec.is_sample_wise:
            plain = codec.packed_layout(codec.packed_samples(written.values))
            self._check(kind, written, plain)
        elif codec is not None and codec.packed_bits:  # its own bytes, in any format
            plain = Layout.of(written)
        return self.formats.read(Stamp(kind, *at), written, plain)

    def _write_gradient(self, kind: str, at: StepId, gradient: Tensor) -> Code:
        return self.formats.write_gradient(
            Stamp(kind, *at), self._codec(kind), gradient
        )

    def _read_gradient(
        self, message: OutputGradient | CodeGradient, values: Tensor | None = None
    ) -> Tensor:
        kind, codec = message.kind, self._codec(message.kind)
        spec = self._values_of(message) if values is None else _spec_of(values)
        plain = Layout(spec) if codec is None else codec.gradient_layout(spec)
        self._check(kind, message.written, plain)
        stamp = Stamp(kind, message.client, message.step)
        return self.formats.read_gradient(stamp, codec, message.written, plain)

    def _values_of(self, message: OutputGradient | CodeGradient) -> TensorSpec:
        """Return the spec of the values that a gradient is of, as far as it tells."""
        known = self._plain_layout(message.kind, message.gradient.shape[0])
        return _spec_of(message.gradient) if known is None else known.values

    def _check(self, kind: str, written: Code, plain: Layout) -> None:
        expected = self.formats.layout(kind, plain)
        if expected.fits(written):
            return
        article = "a" if kind in _AT_FRONT_CUT else "an"
        error = CodecError if kind == CodeMessage.kind else ProtocolError
        raise error(
            f"expected {article} {kind.replace('_', ' ')} of {expected}, "
            f"got {Layout.of(written)}"
        )


def _spec_of(tensor: Tensor) -> TensorSpec:
    """Return the spec of numbers in float32 of the same shape."""
    return TensorSpec(tuple(tensor.shape))
