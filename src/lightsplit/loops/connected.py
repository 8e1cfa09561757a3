"""The client's half of a model, for a loop of the user's own.

    output = model(**batch)      head ─► [server] ─► tail
    output.loss.backward()       the gradient goes to the server and comes back
    optimizer.step()             the server updates too

In evaluation mode or under ``torch.no_grad()`` the model predicts, and the server
learns nothing. The state_dict holds head, tail and the position in the loop.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.optim import Optimizer

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError
from lightsplit.formats import WireFormats
from lightsplit.loops.following import follow
from lightsplit.loops.line import LoopLine
from lightsplit.loops.position import Position, number_of
from lightsplit.loops.tied import save_once
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputMessage,
    Reply,
    Request,
    StepId,
    Wire,
)
from lightsplit.runtime.crossing import Crossing
from lightsplit.runtime.secret import ClientDraws, Secret
from lightsplit.runtime.side import ClientSide
from lightsplit.transports import ByteMeter

_LOG = logging.getLogger(__name__)
_DEFAULT_RATE = 1.0


class ConnectedModel(nn.Module):
    """A model of which a server computes the middle, with a loop of one's own.

    ``lightsplit.connect`` makes it.

    Args:
        side: head and tail, with the codecs' halves.
        line: to the server.
        crossing: what crosses at the cuts.
        secret: seeds everything that this client draws.
        formats: how numbers travel.

    Attributes:
        line: to the server.
        meter: counts the bytes of this model's messages.
    """

    position: Tensor

    def __init__(
        self,
        side: ClientSide,
        line: LoopLine,
        crossing: Crossing,
        *,
        secret: Secret,
        formats: WireFormats,
    ) -> None:
        super().__init__()
        for name, module in side.modules.items():
            self.add_module(name, module)
        self.register_buffer("position", Position().to_tensor())
        self.line = line
        self.meter = ByteMeter()
        self._side = side
        self._crossing = crossing
        self._draws = ClientDraws(secret)
        self._wire = Wire(side.codec, side.output_codec, formats)
        self._wire.check_readable("code", "output")
        self._known: Position | None = None  # the position that the server knows of
        self._has_gradients = False
        self._kept = 0
        self.register_state_dict_pre_hook(_keep)  # type: ignore[no-untyped-call]
        save_once(self)
        follow(self)

    def __getattr__(self, name: str) -> Any:
        """Return a value of the model's own, such as the config that trainers read."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            side = vars(self).get("_side")
            head = None if side is None else side.modules["head"]
            if not hasattr(head, name) or callable(getattr(head, name)):
                raise  # methods are the whole model's
            return getattr(head, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the model returns; the server computes its middle."""
        if not (self.training and torch.is_grad_enabled()):
            return self._predict(args, kwargs)
        here = self._here()
        output = self._run(args, kwargs, here.steps)
        self._move(here._replace(steps=here.steps + 1))
        return output

    def optimizer_stepped(self, optimizer: Optimizer) -> None:
        """Let the server update, after the client's optimizer has."""
        group = optimizer.param_groups[0]
        rate = float(group.get("lr", _DEFAULT_RATE))
        self.update_server(rate, float(group.get("initial_lr", rate)))

    def update_server(
        self, rate: float = _DEFAULT_RATE, base_rate: float = _DEFAULT_RATE
    ) -> None:
        """Let the server update its weights by the gradients since its last update.

        A step of any torch optimizer with parameters of this model does so by itself.
        Call it where the client trains nothing.
        """
        if self._has_gradients:
            self._has_gradients = False
            self.line.apply(rate, base_rate)
            here = self._here()
            self._move(here._replace(updates=here.updates + 1))

    def keep(self) -> None:
        """Let the server save its weights, as ``state_dict()`` does by itself."""
        here = Position.of(self.position)
        if self._known is not None and here.updates != self._kept:
            self.line.keep()
            self._kept = here.updates

    def trainable_state_dict(self) -> dict[str, Tensor]:
        """Return ``state_dict()`` without frozen weights, such as those under adapters.

        ``load_state_dict(…, strict=False)`` takes it.
        """
        frozen = {
            name for name, one in self.named_parameters() if not one.requires_grad
        }
        whole = self.state_dict()
        return {name: one for name, one in whole.items() if name not in frozen}

    def close(self) -> None:
        """End the connection."""
        self.line.close()

    def _here(self) -> Position:
        """Return the position; tell the server first if it has changed by itself."""
        here = Position.of(self.position)
        if here == self._known:
            return here
        run = number_of(self.line.run)
        if here.run not in (0, run):
            _LOG.warning(
                "the checkpoint is of another run; this one begins with its weights "
                "and with the server's"
            )
            here = Position()
        self._has_gradients = False
        self.line.start(here.updates)
        return self._move(here._replace(run=run))

    def _move(self, to: Position) -> Position:
        self._known = to
        self.position.copy_(to.to_tensor())
        return to

    def _run(self, args: Any, kwargs: Any, step: int) -> Any:
        at = StepId(self.line.index, step)
        companions = _companions(self._side, args, kwargs)

        def seeded(part: str) -> Any:
            return self._draws.training(at.client, at.step, part)

        def exchange(activation: Tensor) -> Tensor:
            with torch.autocast(activation.device.type, enabled=False):
                rows, sent = self._crossing.send(activation.float(), companions)
                code = self._side.modules["encoder"](rows)
                values = code.values
                if not values.requires_grad:  # a frozen head
                    values = values.detach().requires_grad_()
                received = _OutputOfServer.apply(self, at, sent, values, *code.side)  # type: ignore[no-untyped-call]
                scopes.enter_context(seeded("tail"))
                return self._lift(Code(received[0], received[1:]), sent)

        with seeded("head"), ExitStack() as scopes:
            return _through(self._side, exchange, args, kwargs)

    def _predict(self, args: Any, kwargs: Any) -> Any:
        at = StepId(self.line.index, Position.of(self.position).steps, False)
        companions = _companions(self._side, args, kwargs)

        def seeded() -> Any:
            return self._draws.prediction(at.client, at.step)

        def exchange(activation: Tensor) -> Tensor:
            with torch.autocast(activation.device.type, enabled=False):
                rows, sent = self._crossing.send(activation.float(), companions)
                code = self._side.modules["encoder"](rows)
                reply = self.ask(self._wire.write_code(at, code, None, sent))
                output = self._wire.read_output(_as_output(reply), is_training=False)
                scopes.enter_context(seeded())
                return self._lift(output, sent)

        with torch.no_grad(), seeded(), ExitStack() as scopes:
            return _through(self._side, exchange, args, kwargs)

    def _lift(self, output: Code, sent: tuple[Tensor, ...]) -> Tensor:
        return self._crossing.take(self._side.lift(output), sent)

    def ask(self, request: Request) -> Reply:
        """Send a message of a step and return the reply.

        Autograd functions run without gradients and perhaps with autocast. A server in
        the same process must not notice.
        """
        with torch.enable_grad():
            reply = self.line.send(request)
        self.meter.count(request, reply)
        return reply

    def send_code(
        self, at: StepId, code: Code, sent: tuple[Tensor, ...]
    ) -> OutputMessage:
        """Return the server's output for the code of a training step."""
        message: CodeMessage = self._wire.write_code(at, code, None, sent)
        return _as_output(self.ask(message))

    def read_output(self, message: OutputMessage) -> Code:
        """Return the output that a message carries."""
        return self._wire.read_output(message)

    def send_gradient(self, at: StepId, gradient: Tensor, values: Tensor) -> Tensor:
        """Return the gradient at the code's values for the gradient at the output."""
        with torch.autocast(gradient.device.type, enabled=False):
            request = self._wire.write_output_gradient(at, gradient.contiguous())
            reply = self.ask(request)
            if not isinstance(reply, CodeGradient):
                raise ProtocolError(
                    f"expected a code gradient, got {type(reply).__name__}"
                )
            self._has_gradients = True
            return self._wire.read_code_gradient(reply, values)


class _OutputOfServer(torch.autograd.Function):
    """Code to output on the way forward, output gradient to code gradient back."""

    @staticmethod
    def forward(
        ctx: Any,
        model: ConnectedModel,
        at: StepId,
        sent: tuple[Tensor, ...],
        values: Tensor,
        *side: Tensor,
    ) -> tuple[Tensor, ...]:
        output = model.read_output(model.send_code(at, Code(values, side), sent))
        ctx.model, ctx.at, ctx.is_done = model, at, False
        ctx.save_for_backward(values)
        received = (output.values.detach(), *output.side)  # a message has no graph
        ctx.mark_non_differentiable(*received[1:])
        return received

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *side: Tensor) -> tuple[Any, ...]:
        del side
        if ctx.is_done:
            raise ProtocolError(
                f"the backward pass of step {ctx.at.step} came twice: the server keeps "
                "no graph; go forward again"
            )
        ctx.is_done = True
        (values,) = ctx.saved_tensors
        back = ctx.model.send_gradient(ctx.at, gradient, values)
        return (None, None, None, back, *[None] * (len(ctx.needs_input_grad) - 4))


def _through(
    side: ClientSide, exchange: Callable[[Tensor], Tensor], args: Any, kwargs: Any
) -> Any:
    """Return the model's output; parts of one model make one forward pass."""
    head: Any = side.modules["head"]
    tail: Any = side.modules["tail"]
    if hasattr(head, "through"):
        return head.through(tail, exchange, *args, **kwargs)
    return tail(exchange(head(*args, **kwargs)))


def _companions(side: ClientSide, args: Any, kwargs: Any) -> tuple[Tensor, ...]:
    head: Any = side.modules["head"]
    if not hasattr(head, "companions"):
        return ()
    found: tuple[Tensor, ...] = head.companions(*args, **kwargs)
    return found


def _keep(model: nn.Module, _prefix: str, _keep_vars: bool) -> None:
    assert isinstance(model, ConnectedModel)  # noqa: S101  it registered this hook
    model.keep()


def _as_output(reply: object) -> OutputMessage:
    if not isinstance(reply, OutputMessage):
        raise ProtocolError(f"expected an output, got {type(reply).__name__}")
    return reply
