"""The server's half of a step.

    CodeMessage     ─► decoder · backbone ─► OutputMessage    the step is open
    OutputGradient  ─► backward, update   ─► CodeGradient     the step is done

In the vanilla topology the CodeMessage brings the labels, and one exchange does it all.
Turns are sequential: while a step is open no other may begin, because its update would
change the weights that the open graph was computed with. Evaluation may go on.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.codecs import Code, Layout, TensorSpec
from lightsplit.errors import ProtocolError
from lightsplit.formats import Stamp, WireFormats
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    detached,
)
from lightsplit.runtime.backward import backward, gradient_at
from lightsplit.runtime.side import ServerSide
from lightsplit.runtime.written import check_formats, layout_of

Loss = Callable[[Tensor, Tensor], Tensor]


class _OpenStep(NamedTuple):
    client: int
    step: int
    values: Tensor
    output: Tensor
    buffers: list[Tensor]  # as they were before the forward pass


class Server:
    """Answers messages with the server side's modules; knows nothing of sockets.

    Args:
        side: the modules that this server runs.
        seed: of the run; must be the clients'.
        loss: of logits and labels (vanilla topology).
        formats: how numbers travel; must be the clients'.
    """

    def __init__(
        self,
        side: ServerSide,
        *,
        seed: int = 0,
        loss: Loss = cross_entropy,
        formats: WireFormats | None = None,
    ) -> None:
        self.side = side
        self.seed = seed
        self.loss = loss
        self.formats = formats or WireFormats(seed=seed)
        check_formats(self.formats, code=side.codec)
        self._open: _OpenStep | None = None
        self._owes_update = False

    def handle(self, request: Request) -> Reply:
        """Return the reply to a message, with all its effects done."""
        reply = self.answer(request)
        self.settle()
        return reply

    def answer(self, request: Request) -> Reply:
        """Return the reply to a message, perhaps before the weights are updated.

        A gradient can be on its way while the optimizer works: send the reply, then
        call ``settle``. The next message waits for it in any case.
        """
        self.settle()
        if isinstance(request, OutputGradient):
            return self._backward(request)
        self._check(request)
        if not request.is_training:
            return self._infer(request)
        if request.labels is not None:
            return self._whole_step(request, request.labels)
        return self._forward(request)

    def settle(self) -> None:
        """Update the weights by the last gradient, if that is still owed."""
        if self._owes_update:
            self._owes_update = False
            self.side.update()

    def abandon_step(self) -> None:
        """Undo an open step whose gradient will not come, running statistics too."""
        if self._open is not None:
            for buffer, before in zip(
                self.side.buffers, self._open.buffers, strict=True
            ):
                buffer.copy_(before)
            self._open = None

    def _check(self, request: CodeMessage) -> None:
        plain = self._layout(request)
        if plain is not None:
            self.formats.layout(CodeMessage.kind, plain).check(request.code)
        if request.is_training and self._open is not None:
            raise ProtocolError(
                f"client {request.client} cannot begin step {request.step}: step "
                f"{self._open.step} of client {self._open.client} is still open"
            )

    def _infer(self, request: CodeMessage) -> OutputMessage:
        self.side.set_training(False)
        with torch.no_grad():
            output = self.side.forward(self._read(request))
        if not self.side.has_tail:  # logits travel as they are
            stamp = Stamp(OutputMessage.kind, *_key(request), is_training=False)
            output = self.formats.write(stamp, output)
        return OutputMessage(*_key(request), output)

    def _layout(self, request: CodeMessage) -> Layout | None:
        return layout_of(self.side.codec, request.code.values.shape[0])

    def _read(self, request: CodeMessage) -> Code:
        stamp = Stamp(request.kind, *_key(request), request.is_training)
        return self.formats.read(stamp, request.code, self._layout(request))

    def _run(self, request: CodeMessage) -> tuple[Tensor, Code]:
        self.side.set_training(True)
        code = self._read(request)
        values = code.values.detach().requires_grad_()
        with seeding.scope(self.seed, request.client, request.step, "server"):
            output = self.side.forward(Code(values, code.side))
        return values, output

    def _forward(self, request: CodeMessage) -> OutputMessage:
        buffers = [buffer.clone() for buffer in self.side.buffers]
        values, output = self._run(request)
        self._open = _OpenStep(
            request.client, request.step, values, output.values, buffers
        )
        stamp = Stamp(OutputMessage.kind, *_key(request))
        written = self.formats.write(stamp, detached(output))
        return OutputMessage(*_key(request), written)

    def _backward(self, request: OutputGradient) -> CodeGradient:
        opened = self._open
        if opened is None or opened[:2] != (request.client, request.step):
            raise ProtocolError(
                f"step {request.step} of client {request.client} has sent no code"
            )
        gradient = self._read_gradient(request, opened.output)
        self._open = None
        self.side.zero_grad()
        backward(opened.output, gradient)
        self._owes_update = True
        return self._code_gradient(request, opened.values)

    def _read_gradient(self, request: OutputGradient, output: Tensor) -> Tensor:
        codec, values = self.side.output_codec, TensorSpec(tuple(output.shape))
        expected = self.formats.gradient_layout(request.kind, codec, values)
        if not expected.fits(request.written):
            raise ProtocolError(
                f"expected an output gradient of {expected}, "
                f"got {Layout.of(request.written)}"
            )
        stamp = Stamp(request.kind, *_key(request))
        return self.formats.read_gradient(stamp, codec, request.written, values)

    def _code_gradient(
        self, request: Request, values: Tensor, loss: float | None = None
    ) -> CodeGradient:
        stamp = Stamp(CodeGradient.kind, *_key(request))
        written = self.formats.write_gradient(
            stamp, self.side.codec, gradient_at(values)
        )
        return CodeGradient(*_key(request), written.values, loss, written.side)

    def _whole_step(self, request: CodeMessage, labels: Tensor) -> CodeGradient:
        values, output = self._run(request)
        loss = self.loss(output.values, labels)
        self.side.zero_grad()
        backward(loss)
        self._owes_update = True
        return self._code_gradient(request, values, loss.item())


def _key(request: Request) -> tuple[int, int]:
    return request.client, request.step
