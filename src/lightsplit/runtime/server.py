"""The server's half of a step.

    CodeMessage     ─► decoder · backbone ─► OutputMessage    the step is open
    OutputGradient  ─► backward, update   ─► CodeGradient     the step is done

In the vanilla topology the CodeMessage brings the labels, and one exchange does it all.
Turns are sequential: while a step is open no other may begin, because its update would
change the weights of the open graph. Evaluation is allowed in between.

A message that is refused leaves weights, running statistics and optimizer as they were.
So the reply is written, and everything is checked, before an update is owed. A gradient
that cannot be computed with undoes its whole step: its graph is used up.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.codecs import Code
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.formats import WireFormats
from lightsplit.protocol import (
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
    StepId,
    Wire,
)
from lightsplit.runtime.magnitudes import (
    NORM_LIMIT,
    check_finite,
    check_norm,
    check_numbers,
)
from lightsplit.runtime.recipe import Pace, Recipe
from lightsplit.runtime.side import ServerSide

Loss = Callable[[Tensor, Tensor], Tensor]


class OpenStep(NamedTuple):
    """A forward pass whose output gradient has not come."""

    client: int
    step: int
    values: Tensor
    output: Tensor
    buffers: list[Tensor]  # before the forward pass


class Server:
    """Answers messages with the server side's modules; knows nothing of sockets.

    Args:
        side: the modules that this server runs.
        seed: of the run; must be the clients'.
        loss: of logits and labels (vanilla topology).
        formats: how numbers travel; must be the clients'.
        norm_limit: the largest number in a code or an output gradient, and the largest
            norm of the gradient of all weights; anything beyond it is refused.
        forward_only: whether no gradient is sent: a step is a code and its output, and
            nothing here is trained.
        recipe: how gradients become updates; must be the clients'.

    Attributes:
        pace: of the turn under way, if the steps belong to a run.
    """

    def __init__(  # noqa: PLR0913
        self,
        side: ServerSide,
        *,
        seed: int = 0,
        loss: Loss = cross_entropy,
        formats: WireFormats | None = None,
        norm_limit: float = NORM_LIMIT,
        forward_only: bool = False,
        recipe: Recipe | None = None,
    ) -> None:
        self.side = side
        self.seed = seed
        self.loss = loss
        self.norm_limit = norm_limit
        self.forward_only = forward_only
        if forward_only:
            _check_forward_only(side)
        self.recipe = recipe or Recipe()
        formats = formats or WireFormats(seed=seed)
        self.wire = Wire(side.codec, side.output_codec, formats)
        self.wire.check_readable("code")
        self._open: OpenStep | None = None
        self._owed: Callable[[], None] | None = None
        self.pace: Pace | None = None

    def twin(self) -> "Server":
        """Return a server with a copy of this one's side, for one owner's steps."""
        return Server(
            copy.deepcopy(self.side),
            seed=self.seed,
            loss=self.loss,
            formats=self.wire.formats,
            norm_limit=self.norm_limit,
            recipe=self.recipe,
        )

    def handle(self, request: Request) -> Reply:
        """Return the reply to a message after all its effects."""
        reply = self.answer(request)
        self.settle()
        return reply

    def answer(self, request: Request) -> Reply:
        """Return the reply to a message, perhaps before the weights are updated.

        Send the reply, then call ``settle``: so the gradient travels while the
        optimizer works. The next message calls ``settle`` in any case.
        """
        self.settle()
        if isinstance(request, OutputGradient):
            if self.forward_only:
                raise ProtocolError("no gradient is sent in this run", code="refused")
            self.side.normalisation.switch_to(request.client)
            return self._backward(request)
        if not isinstance(request, CodeMessage):
            raise ProtocolError(
                f"this run sends a code in every step, got a {request.kind}",
                code="out-of-order",
            )
        code = self.wire.read_code(request)
        check_numbers("code", code.values, self.norm_limit)
        return self._compute(request, code)

    def _compute(self, request: CodeMessage, code: Code) -> Reply:
        """Return the reply to a code that has been read."""
        self.side.normalisation.switch_to(
            request.client, is_training=request.is_training
        )
        if self.forward_only or not request.is_training:
            return self._infer(request, code)
        self._check_free(request)
        if request.labels is not None:
            return self._whole_step(request, code, request.labels)
        return self._forward(request, code)

    def settle(self) -> None:
        """Update the weights by the last gradient, if that has not happened yet."""
        if self._owed is not None:
            owed, self._owed = self._owed, None
            owed()

    def abandon_step(self) -> None:
        """Undo an open step whose gradient will not come, with running statistics."""
        if self._open is not None:
            self.side.normalisation.switch_to(self._open.client)
            self._put_back(self._open.buffers)
            self._open = None

    @contextmanager
    def _undone_if_refused(self, buffers: list[Tensor]) -> Iterator[None]:
        """Put ``buffers`` back and forget the step if the block raises."""
        try:
            yield
        except BaseException:
            self._put_back(buffers)
            self.side.zero_grad()
            self._open = None
            raise

    def _put_back(self, buffers: list[Tensor]) -> None:
        for buffer, before in zip(self.side.buffers, buffers, strict=True):
            buffer.data.copy_(before)  # a graph that is still open may hold the buffer

    def _check_free(self, request: CodeMessage) -> None:
        if self._open is not None:
            raise ProtocolError(
                f"client {request.client} cannot begin step {request.step}: step "
                f"{self._open.step} of client {self._open.client} is still open"
            )

    def _infer(self, request: CodeMessage, code: Code) -> OutputMessage:
        self.side.set_training(False)
        with torch.no_grad(), self.side.normalisation.unchanged(code.values.shape[0]):
            output = self.side.forward(code, request.companions)
        if self.side.has_tail:  # logits travel as they are
            return OutputMessage(request.client, request.step, output)
        at = StepId(request.client, request.step, request.is_training)
        return self.wire.write_output(at, output)

    def _run(self, request: CodeMessage, code: Code) -> tuple[Tensor, Code]:
        self.side.set_training(True)
        values = code.values.detach().requires_grad_()
        with seeding.scope(self.seed, request.client, request.step, "server"):
            output = self.side.forward(Code(values, code.side), request.companions)
        check_finite("the output", [output.values])
        check_finite("running statistics", self.side.statistics)
        return values, output

    def _forward(self, request: CodeMessage, code: Code) -> OutputMessage:
        buffers = self._copied_buffers()
        with self._undone_if_refused(buffers):
            values, output = self._run(request, code)
            at = StepId(request.client, request.step)
            reply = self.wire.write_output(at, output)
        self._open = OpenStep(*at[:2], values, output.values, buffers)
        return reply

    def _backward(self, request: OutputGradient) -> Reply:
        opened = self._open
        if opened is None or opened[:2] != (request.client, request.step):
            raise ProtocolError(
                f"step {request.step} of client {request.client} has sent no code"
            )
        gradient = self.wire.read_output_gradient(request, opened.output)
        check_numbers("output_gradient", gradient, self.norm_limit)
        with self._undone_if_refused(opened.buffers):
            reply = self._differentiated(
                request,
                opened.values,
                partial(torch.autograd.backward, opened.output, gradient),
            )
        self._open = None
        return reply

    def _whole_step(self, request: CodeMessage, code: Code, labels: Tensor) -> Reply:
        with self._undone_if_refused(self._copied_buffers()):
            values, output = self._run(request, code)
            loss = self.loss(output.values, labels)
            check_finite("the loss", [loss])
            backward = partial(torch.autograd.backward, loss)
            return self._differentiated(request, values, backward, loss.item())

    def _differentiated(
        self,
        request: Request,
        values: Tensor,
        backward: Callable[[], None],
        loss: float | None = None,
    ) -> Reply:
        """Return the reply to the end of a step; from then on an update is owed."""
        self.side.zero_grad()
        backward()
        check_norm("gradient of the weights", self.side.gradients, self.norm_limit)
        reply = self._end_of_step(request, values, loss)
        self._owed = partial(self.recipe.apply, self.side, self.pace, request.step)
        return reply

    def _copied_buffers(self) -> list[Tensor]:
        return [buffer.clone() for buffer in self.side.buffers]

    def _end_of_step(
        self, request: Request, values: Tensor, loss: float | None = None
    ) -> Reply:
        """Return the reply after the backward pass: the gradient at the code."""
        at = StepId(request.client, request.step)
        reply = self.wire.write_code_gradient(at, gradient_at(values), loss)
        check_finite("the code gradient", [reply.gradient])
        return reply


def gradient_at(values: Tensor) -> Tensor:
    """Return the gradient at a leaf, zeros where the backward pass did not reach it."""
    return torch.zeros_like(values) if values.grad is None else values.grad


def _check_forward_only(side: ServerSide) -> None:
    """Refuse parts that would stay untrained, and a server that needs labels."""
    if side.has_tail:
        raise ConfigError(
            "without gradients the client needs the labels: topology must be u"
        )
    if side.is_trainable:
        raise ConfigError(
            "without gradients the server trains nothing: choose a codec whose lift "
            "has no weights (raw, lightsplit-f, lightsplit-b with lift=fixed) and an "
            f"output codec without any, got codec {side.codec.name!r}"
        )
