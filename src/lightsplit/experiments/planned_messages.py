"""Messages with the right shapes but without numbers, for forecasts of bytes."""

import torch
from torch import Tensor

from lightsplit.codecs import Code, TensorSpec
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Noted,
    OutputGradient,
    OutputMessage,
    Recall,
    Release,
    Reply,
    Request,
    Wire,
)
from lightsplit.protocol.messages import NUMBER
from lightsplit.transports import ByteMeter

Exchanges = list[tuple[Request, Reply]]


def count(meter: ByteMeter, exchanges: Exchanges, times: int) -> None:
    """Let ``meter`` count exchanges that happen so many times."""
    one = ByteMeter()
    for request, reply in exchanges:
        one.count(request, reply)
    for kind, counted in one.counts.items():
        meter.add(kind, counted * times)


class PlannedMessages:
    """The messages of a run that sends a code in every step.

    Args:
        wire: of the run.
        result: shape of the model's result for one sample.
        has_gradients: whether gradients are sent.
    """

    def __init__(
        self, wire: Wire, result: tuple[int, ...], *, has_gradients: bool
    ) -> None:
        self._has_gradients = has_gradients
        self._wire = wire
        self._result = result

    def step(self, size: int, client: int, step: int) -> Exchanges:
        """Return the messages of a step with ``size`` samples."""
        code, at = self._empty("code", size), (client, step)
        back, scales = self._empty("code_gradient", size)
        if self._wire.output_codec is None:
            labels = _empty(TensorSpec((size,), torch.int64))
            reply = CodeGradient(*at, back, 1.0, scales)
            return [(CodeMessage(*at, code, labels), reply)]
        forward = (CodeMessage(*at, code), self._output(size, client, step))
        if not self._has_gradients:
            return [forward]
        gradient = OutputGradient(*at, *self._empty("output_gradient", size))
        return [forward, (gradient, CodeGradient(*at, back, None, scales))]

    def evaluation(self, size: int, client: int, step: int) -> Exchanges:
        """Return the messages of a batch outside training."""
        code = self._empty("code", size)
        request = CodeMessage(client, step, code, is_training=False)
        if self._wire.output_codec is None:  # plain logits
            logits = Code(_empty(TensorSpec((size, *self._result))))
            return [(request, OutputMessage(client, step, logits))]
        return [(request, self._output(size, client, step))]

    def release(
        self, size: int, client: int, step: int, first: int, is_training: bool
    ) -> Exchanges:
        """Return the messages that release codes from sample ``first`` on."""
        code = self._empty("code", size)
        request = Release(client, step, first, code, is_training)
        return [(request, Noted(client, step))]

    def _output(self, size: int, client: int, step: int) -> OutputMessage:
        return OutputMessage(client, step, self._empty("output", size))

    def _empty(self, kind: str, size: int) -> Code:
        layout = self._wire.layout(kind, size)
        return Code(_empty(layout.values), tuple(map(_empty, layout.side)))


class PlannedOnce(PlannedMessages):
    """The messages of a run that sends each code once."""

    def step(self, size: int, client: int, step: int) -> Exchanges:
        """Return the messages of a step that names ``size`` samples."""
        forward = self._recalled(size, client, step, is_training=True)
        if not self._has_gradients:
            return [forward]
        gradient = self._empty("output_gradient", size)
        end = OutputGradient(client, step, *gradient), Noted(client, step)
        return [forward, end]

    def evaluation(self, size: int, client: int, step: int) -> Exchanges:
        """Return the messages of a batch of test samples that were released."""
        return [self._recalled(size, client, step, is_training=False)]

    def _recalled(
        self, size: int, client: int, step: int, *, is_training: bool
    ) -> tuple[Request, Reply]:
        numbers = _empty(TensorSpec((size,), NUMBER))
        request = Recall(client, step, numbers, is_training)
        return request, self._output(size, client, step)


def _empty(spec: TensorSpec) -> Tensor:
    return torch.empty(spec.shape, dtype=spec.dtype, device="meta")
