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
from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    detached,
)
from lightsplit.runtime.side import ServerSide

Loss = Callable[[Tensor, Tensor], Tensor]


class _OpenStep(NamedTuple):
    client: int
    step: int
    values: Tensor
    output: Tensor
    buffers: list[Tensor]  # as they were before the forward pass


class Server:
    """Answers messages with the server side's modules; knows nothing of sockets."""

    def __init__(
        self, side: ServerSide, *, seed: int = 0, loss: Loss = cross_entropy
    ) -> None:
        self.side = side
        self.seed = seed
        self.loss = loss
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
        code = request.code
        if self.side.codec.is_sample_wise:
            self.side.codec.layout(len(code.values)).check(code)
        if request.is_training and self._open is not None:
            raise ProtocolError(
                f"client {request.client} cannot begin step {request.step}: step "
                f"{self._open.step} of client {self._open.client} is still open"
            )

    def _infer(self, request: CodeMessage) -> OutputMessage:
        self.side.set_training(False)
        with torch.no_grad():
            output = self.side.forward(request.code)
        return OutputMessage(request.client, request.step, output)

    def _run(self, request: CodeMessage) -> tuple[Tensor, Code]:
        self.side.set_training(True)
        values = request.code.values.detach().requires_grad_()
        with seeding.scope(self.seed, request.client, request.step, "server"):
            output = self.side.forward(Code(values, request.code.side))
        return values, output

    def _forward(self, request: CodeMessage) -> OutputMessage:
        buffers = [buffer.clone() for buffer in self.side.buffers]
        values, output = self._run(request)
        self._open = _OpenStep(
            request.client, request.step, values, output.values, buffers
        )
        return OutputMessage(request.client, request.step, detached(output))

    def _backward(self, request: OutputGradient) -> CodeGradient:
        opened = self._open
        if opened is None or opened[:2] != (request.client, request.step):
            raise ProtocolError(
                f"step {request.step} of client {request.client} has sent no code"
            )
        if request.gradient.shape != opened.output.shape:
            raise ProtocolError(
                f"expected an output gradient of shape {tuple(opened.output.shape)}, "
                f"got {tuple(request.gradient.shape)}"
            )
        self._open = None
        self.side.zero_grad()
        opened.output.backward(request.gradient)  # type: ignore[no-untyped-call]
        self._owes_update = True
        return CodeGradient(request.client, request.step, gradient_at(opened.values))

    def _whole_step(self, request: CodeMessage, labels: Tensor) -> CodeGradient:
        values, output = self._run(request)
        loss = self.loss(output.values, labels)
        self.side.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._owes_update = True
        return CodeGradient(
            request.client, request.step, gradient_at(values), loss.item()
        )


def gradient_at(values: Tensor) -> Tensor:
    """Return what a backward pass left at a leaf, zeros where it did not reach it."""
    return torch.zeros_like(values) if values.grad is None else values.grad
