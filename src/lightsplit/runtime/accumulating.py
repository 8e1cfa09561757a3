"""A server that updates its weights when it is told to.

    codes and output gradients   gradients add up, as in a loop of one's own
    apply                        one step of the optimizer, then they are forgotten
    discard                      forgotten at once, with changed running statistics

Between two updates the weights stay, so several forward passes may be open at a time.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, OutputGradient, OutputMessage, Reply
from lightsplit.runtime.magnitudes import check_norm, check_numbers
from lightsplit.runtime.server import OpenStep, Server
from lightsplit.runtime.side import ServerSide, State

MOST_OPEN = 16  # forward passes whose backward pass has not come
_LARGEST_FACTOR = 1000.0  # between a learning rate and the one that it began with


class AccumulatingServer(Server):
    """Adds up gradients until ``apply``.

    Args:
        side: the modules that this server runs.
        clip_norm: the largest norm of the gradient of the weights, which is scaled down
            to it; None does not clip.
        autocast: a type such as ``torch.bfloat16`` to compute in; None is the weights'.
        options: of Server.
    """

    def __init__(
        self,
        side: ServerSide,
        *,
        clip_norm: float | None = None,
        autocast: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(side, **options)
        self._clip_norm = clip_norm
        self._autocast = autocast
        self._opened: dict[tuple[int, int], OpenStep] = {}
        self._before: list[Tensor] | None = None  # buffers at the last update
        self._client = 0  # whose update is under way
        groups = side.optimizer.param_groups if side.optimizer else []
        self._rates = [float(group["lr"]) for group in groups]

    def apply(self, rate: float = 1.0, base_rate: float = 1.0) -> None:
        """Owe an update by all gradients since the last one; ``settle`` makes it.

        Args:
            rate: the client's learning rate now.
            base_rate: the one that its schedule began with. This server's own learning
                rate follows in the same proportion.
        """
        check_norm("gradient of the weights", self.side.gradients, self.norm_limit)
        self._follow(rate, base_rate)
        if self._clip_norm is not None:
            clip_grad_norm_(self.side.modules.parameters(), self._clip_norm)
        self._opened.clear()
        self._before = None
        self._owed = self._update

    def _update(self) -> None:
        self.side.update()
        self.side.zero_grad()

    def discard(self) -> None:
        """Forget all gradients since the last update, and what they came from."""
        self.settle()
        self._opened.clear()
        self.side.zero_grad()
        if self._before is not None:
            self.side.normalisation.switch_to(self._client)
            self._put_back(self._before)
            self._before = None

    def state(self) -> State:
        """Return copies of what training changes, as the last update left it.

        That is trainable weights, running statistics and the optimizer. Frozen weights
        are the model's own, and are not in it.
        """
        self.settle()
        self.side.normalisation.switch_to(self._client)
        now = self._copied_buffers()
        if self._before is not None:
            self._put_back(self._before)
        frozen = {
            name
            for name, one in self.side.modules.named_parameters()
            if not one.requires_grad
        }
        copied = {
            name: one.detach().clone()
            for name, one in self.side.state().items()
            if name not in frozen
        }
        self._put_back(now)
        return copied

    def load(self, state: State) -> None:
        """Return to a state; gradients since the last update are forgotten."""
        self.discard()
        self.side.load({**self.side.state(), **state})

    def _check_free(self, request: CodeMessage) -> None:
        if request.labels is not None:
            raise ProtocolError(
                "expected no labels: in a loop they stay with the owner"
            )

    def _infer(self, request: CodeMessage, code: Code) -> OutputMessage:
        with self._precision(code.values):
            return super()._infer(request, code)

    def _run(self, request: CodeMessage, code: Code) -> tuple[Tensor, Code]:
        with self._precision(code.values):
            return super()._run(request, code)

    def _forward(self, request: CodeMessage, code: Code) -> OutputMessage:
        if self._before is None:
            self._before, self._client = self._copied_buffers(), request.client
        reply = super()._forward(request, code)
        assert self._open is not None  # noqa: S101  a forward pass has opened it
        self._opened[self._open.client, self._open.step] = self._open
        self._open = None
        while len(self._opened) > MOST_OPEN:
            del self._opened[next(iter(self._opened))]
        return reply

    def _backward(self, request: OutputGradient) -> Reply:
        opened = self._opened.pop((request.client, request.step), None)
        if opened is None:
            raise ProtocolError(
                f"the forward pass of step {request.step} is not open: its backward "
                "pass must come once, before the optimizer's step, and before "
                f"{MOST_OPEN} other forward passes"
            )
        gradient = self.wire.read_output_gradient(request, opened.output)
        check_numbers("output_gradient", gradient, self.norm_limit)
        torch.autograd.backward(opened.output, gradient)
        return self._end_of_step(request, opened.values)

    def _precision(self, values: Tensor) -> AbstractContextManager[Any]:
        if self._autocast is None:
            return nullcontext()
        return torch.autocast(values.device.type, self._autocast)

    def _follow(self, rate: float, base_rate: float) -> None:
        """Scale the learning rate as the client's schedule has scaled its own."""
        is_legal = math.isfinite(rate) and 0 <= rate <= _LARGEST_FACTOR * base_rate
        if not (math.isfinite(base_rate) and base_rate >= 0 and is_legal):
            raise ProtocolError(
                f"expected a learning rate of 0 to {_LARGEST_FACTOR:.0f} times the one "
                f"that it began with, {base_rate:g}; got {rate:g}",
                code="out-of-range",
            )
        groups = self.side.optimizer.param_groups if self.side.optimizer else []
        for group, own in zip(groups, self._rates, strict=True):
            is_same = own == base_rate  # then the very number
            factor = rate / base_rate if base_rate else 1.0
            group["lr"] = rate if is_same else own * factor
