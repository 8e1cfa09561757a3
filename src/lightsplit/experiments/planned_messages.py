"""Messages with the right shapes but without numbers, for forecasts of bytes."""

from typing import Any

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
    Share,
    Total,
    Wire,
)
from lightsplit.protocol.messages import NONCE_BYTES, NUMBER
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

    def end_of_turn(self, client: int, step: int) -> Exchanges:  # noqa: ARG002
        """Return the messages after the last step of a turn, besides a hand-off."""
        return []

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


class PlannedRounds(PlannedMessages):
    """The messages of rounds in which owners average a shared side.

    Args:
        in_every_step: whether they do so in every step, rather than once in a round.
        length: numbers of a share.
        owners: of a round.
        options: of PlannedMessages.
    """

    def __init__(
        self,
        *arguments: Any,
        in_every_step: bool,
        length: int,
        owners: int,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._in_every_step = in_every_step
        self._numbers = _empty(TensorSpec((length,), torch.int64))
        self._nonces = [
            _empty(TensorSpec((count, NONCE_BYTES), torch.uint8))
            for count in (1, owners)
        ]

    def step(self, size: int, client: int, step: int) -> Exchanges:
        """Return the messages of a step with ``size`` samples."""
        messages = super().step(size, client, step)
        return messages + self._sum(client, step) if self._in_every_step else messages

    def end_of_turn(self, client: int, step: int) -> Exchanges:
        """Return the messages after the last step of a turn."""
        return [] if self._in_every_step else self._sum(client, step)

    def _sum(self, client: int, step: int) -> Exchanges:
        own, all_ = self._nonces
        share = Share(client, step, self._numbers, own)
        samples = 1  # any number takes as many bytes
        return [(share, Total(client, step, samples, self._numbers, all_))]


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
