"""The client's half of a model, as an ordinary module.

    forward    inputs ─► head · encoder ─► code ─► [server] ─► output ─► decoder · tail
    backward   head ◄── code gradient ◄── [server] ◄── output gradient ◄── tail

The server sits in the middle as one autograd function. Its forward sends the code and
returns the output; its backward sends the output gradient and returns the code
gradient. So the usual loop trains the whole model::

    loss = cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

In the vanilla topology the server computes the loss: ``loss = model(inputs, labels)``.
It has done its step by then, so always call ``backward``. In evaluation mode or under
``torch.no_grad()``, ``model(inputs)`` predicts in both topologies.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.formats import WireFormats
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputMessage,
    Recall,
    Reply,
    Request,
    StepId,
    Wire,
)
from lightsplit.runtime.encoded import Encoded
from lightsplit.runtime.secret import ClientDraws, Secret
from lightsplit.runtime.side import ClientSide
from lightsplit.transports import Send


class Passed(NamedTuple):
    """A training batch that went forward: its code, and what ``forward`` returns."""

    encoded: Encoded
    output: Any


Companions = tuple[Tensor, ...]
Watch = Callable[[Encoded], Code]
Protect = Callable[[Tensor], Tensor]


class ClientModel(nn.Module):
    """A model of which a server computes the middle.

    Its submodules are those of the client's side: head, encoder, decoder and tail.

    Args:
        side: the modules that this client runs.
        send: carries a message to the server and returns the reply;
            ``server.handle`` in one process.
        index: which client this is.
        secret: seeds everything that this client draws; without it Secret(0), which
            hides nothing.
        formats: how numbers travel; must be the server's.
        forward_only: whether no gradient is sent; must be the server's.

    Attributes:
        steps: training steps that are over.

    Example:
        >>> from functools import partial
        >>> from lightsplit import ClientSide, Server, ServerSide, make_codec
        >>> sgd = partial(torch.optim.SGD, lr=0.1)
        >>> codec = make_codec("raw", shape=(6,))
        >>> server = Server(ServerSide(nn.Linear(6, 5), codec, sgd))
        >>> side = ClientSide(nn.Linear(8, 6), nn.Linear(5, 3), codec)
        >>> model = ClientModel(side, server.handle)
        >>> optimizer = sgd(model.parameters())
        >>> logits = model(torch.rand(4, 8))
        >>> loss = nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0]))
        >>> loss.backward()  # the server has now done its step
        >>> optimizer.step()
    """

    def __init__(
        self,
        side: ClientSide,
        send: Send,
        *,
        index: int = 0,
        secret: Secret | None = None,
        formats: WireFormats | None = None,
        forward_only: bool = False,
    ) -> None:
        super().__init__()
        for name, module in side.modules.items():
            self.add_module(name, module)
        self.side = side
        self.send = send
        self.index = index
        self.draws = ClientDraws(secret or Secret(0))
        self.steps = 0
        self.forward_only = forward_only
        formats = formats or WireFormats()
        self.wire = Wire(side.codec, side.output_codec, formats)
        self.wire.check_readable("code", *(["output"] if side.has_tail else []))

    def train(self, mode: bool = True) -> Self:
        """Set the mode as for any module; frozen parts stay in evaluation mode."""
        super().train(mode)
        self.side.keep_frozen()
        return self

    def forward(self, inputs: Any, labels: Tensor | None = None) -> Any:
        """Return the tail's output; in vanilla training, the server's loss.

        Args:
            inputs: of the head.
            labels: in vanilla training only, where the server needs them.
        """
        if self.training and torch.is_grad_enabled():
            return self.run(inputs, labels).output
        return self.predict(inputs)

    def run(
        self,
        inputs: Any,
        labels: Tensor | None = None,
        watch: Watch | None = None,
        protect: Protect | None = None,
    ) -> Passed:
        """Take a training batch forward.

        Args:
            inputs: of the head.
            labels: in vanilla training only.
            watch: returns the code to send, given what the encoder made.
            protect: returns the output gradient to send in place of the true one.
        """
        self._check_labels(labels)
        watch = watch or _sent_as_it_is
        companions = self.side.companions(inputs)
        if not self.side.has_tail:
            with self.seeded("head"):
                encoded = self.encode(self.side.activate(inputs))
            return Passed(encoded, self._ask_loss(watch(encoded), labels, companions))
        made: list[Encoded] = []

        def exchange(activation: Tensor) -> Tensor:
            made.append(self.encode(activation))
            received = self._exchanged(watch(made[0]), companions, protect)
            tail.enter_context(self.seeded("tail"))
            return made[0].undone(self.side.lift(received))

        with self.seeded("head"), ExitStack() as tail:
            output = self.side.run(inputs, exchange)
        if not self.has_gradients:
            self.steps += 1
        return Passed(made[0], output)

    @property
    def has_gradients(self) -> bool:
        """Whether a step ends with an exchange of gradients."""
        return self.side.codec.is_sent and not self.forward_only

    def predict(self, inputs: Any) -> Any:
        """Return the tail's output without gradients; the server trains nothing."""
        at = StepId(self.index, self.steps, is_training=False)
        companions = self.side.companions(inputs)

        def exchange(activation: Tensor) -> Tensor:
            encoded = self.encode(activation)
            output = encoded.sent
            if self.side.codec.is_sent:
                output = self._asked(at, output, companions)
            tail.enter_context(self.draws.prediction(self.index, self.steps))
            return encoded.undone(self.side.lift(output))

        with (
            torch.no_grad(),
            self.draws.prediction(self.index, self.steps),
            ExitStack() as tail,
        ):
            if self.side.has_tail:
                return self.side.run(inputs, exchange)
            return exchange(self.side.activate(inputs))

    def _asked(self, at: StepId, code: Code, companions: Companions) -> Code:
        """Return the server's output for a code outside training."""
        request = self.wire.write_code(at, code, companions=companions)
        reply = as_output(self._checked(request, self.send(request)))
        if not self.side.has_tail:  # logits, which travel as they are
            return reply.output
        return self.wire.read_output(reply, is_training=False)

    def seeded(
        self, part: str, step: int | None = None
    ) -> AbstractContextManager[None]:
        """Return a block whose random numbers are those of one part of a step."""
        chosen = self.steps if step is None else step
        return self.draws.training(self.index, chosen, part)

    def ask(self, request: Request) -> Reply:
        """Send a message of a training step and return the reply.

        Autograd functions run without gradients. A server in the same process needs
        them, and so does an attack that learns from what it sees.
        """
        with torch.enable_grad():
            return self._checked(request, self.send(request))

    def _checked(self, request: Request, reply: Reply) -> Reply:
        """Return a reply that belongs to ``request``; refuse another one."""
        asked, told = (request.client, request.step), (reply.client, reply.step)
        if asked != told:
            raise ProtocolError(
                f"expected the reply to step {asked[1]} of client {asked[0]}, got one "
                f"to step {told[1]} of client {told[0]}"
            )
        if isinstance(reply, OutputMessage) and isinstance(
            request, CodeMessage | Recall
        ):
            self._check_rows(request, len(reply.output.values))
        return reply

    def _check_rows(self, request: CodeMessage | Recall, got: int) -> None:
        """Refuse an output of another number of samples than the request."""
        codecs = (self.wire.codec, self.wire.output_codec)
        if not all(codec is None or codec.is_sample_wise for codec in codecs):
            return
        legal = self._legal_rows(request)
        if got not in legal:
            rows = " or ".join(map(str, sorted(legal)))
            raise ProtocolError(f"expected an output of {rows} rows, got {got}")

    def _legal_rows(self, request: CodeMessage | Recall) -> set[int]:
        if isinstance(request, Recall):
            return {len(request.numbers)}
        # With a row per token, the output may still have a row per sequence.
        batch = [len(companion) for companion in request.companions[:1]]
        return {self.wire.codec.packed_samples(request.code.values), *batch}

    def encode(self, activation: Tensor) -> Encoded:
        """Return the encoder's code for an activation, and the code to send."""
        covered, uncover = self.side.cover(activation)
        latent, code = self.side.codec.encoder.coded(covered)
        return Encoded(activation, latent, code, self.side.disturb(code), uncover)

    def _exchanged(
        self, code: Code, companions: Companions, protect: Protect | None
    ) -> Code:
        """Return what comes back for a code: the code itself if nothing is sent."""
        if not self.side.codec.is_sent:
            return code
        if self.forward_only:  # the gradient ends there, and none is sent
            at = StepId(self.index, self.steps)
            request = self.wire.write_code(at, code, companions=companions)
            return self.wire.read_output(as_output(self.ask(request)))
        values, side = _with_gradient(code.values), code.side
        received = _OutputOfServer.apply(self, companions, protect, values, *side)  # type: ignore[no-untyped-call]
        return Code(received[0], received[1:])

    def _ask_loss(
        self, code: Code, labels: Tensor | None, companions: Companions
    ) -> Tensor:
        values, side = _with_gradient(code.values), code.side
        loss: Tensor = _LossOfServer.apply(self, companions, labels, values, *side)  # type: ignore[no-untyped-call]
        return loss

    def _check_labels(self, labels: Tensor | None) -> None:
        if self.side.has_tail and labels is not None:
            raise ConfigError(
                "expected no labels: the client has the tail, so labels stay with it; "
                "pass them to your loss"
            )
        if not self.side.has_tail and labels is None:
            raise ConfigError(
                "expected labels: the server has the tail and computes the loss; call "
                "model(inputs, labels)"
            )


class _OutputOfServer(torch.autograd.Function):
    """Code to output on the way forward, output gradient to code gradient back."""

    @staticmethod
    def forward(
        ctx: Any,
        model: ClientModel,
        companions: Companions,
        protect: Protect | None,
        values: Tensor,
        *side: Tensor,
    ) -> tuple[Tensor, ...]:
        at = StepId(model.index, model.steps)
        code = Code(values, side)
        reply = model.ask(model.wire.write_code(at, code, companions=companions))
        output = model.wire.read_output(as_output(reply))
        ctx.model, ctx.at, ctx.protect = model, at, protect
        ctx.save_for_backward(values)
        # A new tensor: autograd enters in it where it came from, and a message must
        # not belong to a graph.
        received = (output.values.detach(), *output.side)
        ctx.mark_non_differentiable(*received[1:])
        return received

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *side: Tensor) -> tuple[Any, ...]:
        del side
        (values,) = ctx.saved_tensors
        model = ctx.model
        if ctx.protect is not None:
            with model.seeded("label protection", ctx.at.step):
                gradient = ctx.protect(gradient)
        request = model.wire.write_output_gradient(ctx.at, gradient.contiguous())
        reply = _as_gradient(model.ask(request))
        model.steps += 1
        back = model.wire.read_code_gradient(reply, values)
        return (None, None, None, back, *[None] * (len(ctx.needs_input_grad) - 4))


class _LossOfServer(torch.autograd.Function):
    """Code and labels to the server's loss; its gradient comes with it."""

    @staticmethod
    def forward(
        ctx: Any,
        model: ClientModel,
        companions: Companions,
        labels: Tensor,
        values: Tensor,
        *side: Tensor,
    ) -> Tensor:
        at = StepId(model.index, model.steps)
        code = Code(values, side)
        reply = model.ask(model.wire.write_code(at, code, labels, companions))
        loss = _loss_in(reply)
        ctx.save_for_backward(
            model.wire.read_code_gradient(_as_gradient(reply), values)
        )
        model.steps += 1
        return values.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        others = [None] * (len(ctx.needs_input_grad) - 4)
        return (None, None, None, gradient * scale, *others)


def _sent_as_it_is(encoded: Encoded) -> Code:
    return encoded.sent


def _with_gradient(values: Tensor) -> Tensor:
    """Return values with a gradient: the server needs it for a frozen head too."""
    return values if values.requires_grad else values.detach().requires_grad_()


def as_output(reply: object) -> OutputMessage:
    """Return a reply that must be an output."""
    if not isinstance(reply, OutputMessage):
        raise ProtocolError(f"expected an output, got {type(reply).__name__}")
    return reply


def _as_gradient(reply: object) -> CodeGradient:
    if not isinstance(reply, CodeGradient):
        raise ProtocolError(f"expected a code gradient, got {type(reply).__name__}")
    return reply


def _loss_in(reply: object) -> float:
    loss = _as_gradient(reply).loss
    if loss is None:
        raise ProtocolError("expected a code gradient with its loss, got no loss")
    return loss
