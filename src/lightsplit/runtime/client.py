"""The client's half of a step, as in the paper's twenty steps.

    head · encoder ─► code ─► [server] ─► output ─► tail ─► loss
                        ▲                              │
      R(∂CE/∂z̃ + λ ∂WCC/∂z̃) ◄── code gradient ◄── output gradient

Within-class compaction is added here, to the gradient that came back: the server's
messages do not depend on it.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightsplit import seeding
from lightsplit.codecs import Code, TensorSpec
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.formats import Stamp, WireFormats
from lightsplit.losses import within_class_compaction
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    detached,
)
from lightsplit.runtime.backward import backward, gradient_at
from lightsplit.runtime.hand_off import HandOff
from lightsplit.runtime.server import Loss
from lightsplit.runtime.side import ClientSide, State
from lightsplit.runtime.written import check_formats, layout_of
from lightsplit.transports import Send


class BatchSource(Protocol):
    """Batches by step number, so that a resumed run sees the same ones."""

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of ``step``."""
        ...


class Inspector(Protocol):
    """Looks at the gradients that come back, before anything is added to them."""

    def probe(self, step: int, labels: Tensor) -> Tensor | None:
        """Return wrong labels to try the server with; None to train as usual."""
        ...

    def observe(
        self, step: int, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        """Look at the gradient that was received for the code ``values``."""
        ...


class TurnReport(NamedTuple):
    """What a turn did."""

    steps: int
    samples: int
    loss_sum: float  # over samples


class Client:
    """Trains its side against a server that it reaches by ``send``.

    Args:
        side: the modules that this client runs; shared heads are one side in many
            clients.
        send: carries a message to the server and returns the reply;
            ``server.handle`` in one process.
        index: which client this is.
        wcc: strength λ of within-class compaction.
        seed: of the run; must be the server's.
        loss: of logits and labels, a mean over the batch.
        device: where the modules are.
        formats: how numbers travel; must be the server's.
        hand_off: how a shared side travels; must be the other clients'.
        inspector: looks at what the server sends back.

    Attributes:
        steps: that were done.
        residual: what the last hand-off rounded away.
    """

    def __init__(  # noqa: PLR0913
        self,
        side: ClientSide,
        send: Send,
        *,
        index: int = 0,
        wcc: float = 0.0,
        seed: int = 0,
        loss: Loss = cross_entropy,
        device: torch.device | None = None,
        formats: WireFormats | None = None,
        hand_off: HandOff | None = None,
        inspector: Inspector | None = None,
    ) -> None:
        if not wcc >= 0:
            raise ConfigError(f"wcc must be 0 or more, got {wcc}")
        if wcc and not side.codec.is_sample_wise:
            raise ConfigError(
                f"wcc needs one code per sample; {side.codec.name!r} mixes them"
            )
        self.side = side
        self.index = index
        self.wcc = wcc
        self.seed = seed
        self.loss = loss
        self.device = device
        self.formats = formats or WireFormats(seed=seed)
        self.hand_off = hand_off or HandOff(side)
        self.residual: State = {}
        self.inspector = inspector
        self.steps = 0
        self.send = send
        check_formats(self.formats, code=side.codec)
        if side.has_tail:
            check_formats(self.formats, output=side.output_codec)

    def step(self, inputs: Tensor, labels: Tensor) -> float:
        """Train on one batch and return its loss (without compaction)."""
        inputs, labels = inputs.to(self.device), labels.to(self.device)
        self.side.set_training(True)
        with seeding.scope(self.seed, self.index, self.steps, "head"):
            code = self.side.encode(inputs)
        self.side.zero_grad()
        probe = self._probe(labels)
        used = labels if probe is None else probe
        gradient, loss = self._exchange(code, used)
        if self.inspector is not None:
            self.inspector.observe(self.steps, code.values, used, gradient)
        if probe is None:
            self._backward_through_head(code.values, labels, gradient)
            self.side.update()
        self.steps += 1
        return loss

    def run_turn(self, batches: BatchSource, steps: int) -> TurnReport:
        """Train on the next ``steps`` batches."""
        samples, loss_sum = 0, 0.0
        for _ in range(steps):
            inputs, labels = batches.batch(self.steps)
            loss_sum += self.step(inputs, labels) * len(labels)
            samples += len(labels)
        return TurnReport(steps, samples, loss_sum)

    def predict(self, inputs: Tensor) -> Tensor:
        """Return logits with every module in evaluation mode; nothing is trained."""
        self.side.set_training(False)
        with torch.no_grad():
            code = self.side.encode(inputs.to(self.device))
            request = self._code_message(code, is_training=False)
            output = _output(self.send(request))
            if self.side.has_tail:  # logits travel as they are
                output = self._read_output(output, is_training=False)
            return self.side.decode(output)

    def hand_on(self) -> State:
        """Return the side as it travels to the next client."""
        written, self.residual = self.hand_off.write(
            self.side.state(), self.residual, client=self.index, step=self.steps
        )
        return written

    def take_over(self, written: State) -> None:
        """Go on with the side that another client handed on."""
        self.side.load(self.hand_off.read(written))

    def _probe(self, labels: Tensor) -> Tensor | None:
        if self.inspector is None:
            return None
        return self.inspector.probe(self.steps, labels)

    def _exchange(self, code: Code, labels: Tensor) -> tuple[Tensor, float]:
        """Return the gradient at the code and the loss."""
        if not self.side.has_tail:
            reply = self.send(self._code_message(code, labels))
            return self._read_gradient(reply, code), _loss(reply)
        output = self._read_output(_output(self.send(self._code_message(code))))
        values = output.values.detach().requires_grad_()
        with seeding.scope(self.seed, self.index, self.steps, "tail"):
            loss = self.loss(self.side.decode(Code(values, output.side)), labels)
        backward(loss)
        written = self.formats.write_gradient(
            self._stamp(OutputGradient.kind),
            self.side.output_codec,
            gradient_at(values),
        )
        reply = self.send(
            OutputGradient(self.index, self.steps, written.values, written.side)
        )
        return self._read_gradient(reply, code), loss.item()

    def _code_message(
        self, code: Code, labels: Tensor | None = None, *, is_training: bool = True
    ) -> CodeMessage:
        stamp = self._stamp(CodeMessage.kind, is_training=is_training)
        written = self.formats.write(stamp, detached(code))
        return CodeMessage(self.index, self.steps, written, labels, is_training)

    def _read_output(self, written: Code, *, is_training: bool = True) -> Code:
        stamp = self._stamp(OutputMessage.kind, is_training=is_training)
        plain = layout_of(self.side.output_codec, written.values.shape[0])
        return self.formats.read(stamp, written, plain)

    def _read_gradient(self, reply: object, code: Code) -> Tensor:
        stamp = self._stamp(CodeGradient.kind)
        values = TensorSpec(tuple(code.values.shape))
        return self.formats.read_gradient(
            stamp, self.side.codec, _gradient(reply), values
        )

    def _stamp(self, kind: str, *, is_training: bool = True) -> Stamp:
        return Stamp(kind, self.index, self.steps, is_training)

    def _backward_through_head(
        self, values: Tensor, labels: Tensor, gradient: Tensor
    ) -> None:
        if not values.requires_grad:
            return
        if not self.wcc:
            backward(values, gradient)
            return
        compaction = self.wcc * within_class_compaction(values, labels)
        torch.autograd.backward([values, compaction], [gradient, None])


def _output(reply: object) -> Code:
    if not isinstance(reply, OutputMessage):
        raise ProtocolError(f"expected an output, got {type(reply).__name__}")
    return reply.output


def _gradient(reply: object) -> Code:
    if not isinstance(reply, CodeGradient):
        raise ProtocolError(f"expected a code gradient, got {type(reply).__name__}")
    return reply.written


def _loss(reply: object) -> float:
    if not isinstance(reply, CodeGradient) or reply.loss is None:
        raise ProtocolError("expected a code gradient with its loss")
    return reply.loss
