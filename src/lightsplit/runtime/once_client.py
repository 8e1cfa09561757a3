"""A client that sends the code of each sample once.

    local     head · encoder ─► code ─► local tail ─► loss + objectives
    release   frozen head · encoder ─► code ──────────► [server keeps it]
    train     numbers of samples ─► [server] ─► output ─► tail ─► loss
              [server trains] ◄── output gradient ◄───────┘

The local tail, one linear layer on the code, stands for everything behind the cut while
head and encoder train. Then both are frozen: nothing later changes a code. Labels stay
here: the server gets the gradient at its output and sends none back.

Codes are made in evaluation mode, so that each depends on its own sample alone. Test
samples are released at the first evaluation, also once, and named from then on.
"""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.nesting import batch_size, map_tensors, to_device
from lightsplit.objectives import ClientView
from lightsplit.protocol import Noted, Recall, Reply, StepId
from lightsplit.protocol.messages import NUMBER
from lightsplit.protocol.phases import LOCAL, RELEASE
from lightsplit.runtime.client import Client
from lightsplit.runtime.client_model import as_output
from lightsplit.runtime.release_log import ReleaseLog
from lightsplit.runtime.turn import BatchSource, TurnReport


@runtime_checkable
class NumberedBatches(BatchSource, Protocol):
    """Batches whose samples have numbers, counted from 0."""

    def numbers(self, step: int) -> Tensor:
        """Return the samples of ``step``."""
        ...

    def in_order(self, position: int) -> Tensor:
        """Return the samples of one batch of a pass in order."""
        ...

    def numbered(self, numbers: Tensor) -> tuple[Any, Any]:
        """Return inputs and labels of the samples of these numbers."""
        ...


class OnceClient(Client):
    """Trains alone, releases its codes, and then trains its tail with the server.

    Attributes:
        tested: codes of test samples that the server has.
        releases: remembers what was sent.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.tested = 0
        self.releases = ReleaseLog()

    def run_turn(self, batches: BatchSource, steps: int) -> TurnReport:
        """Take the next ``steps`` steps of the phase that the run is in."""
        phase = "" if self.pace is None else self.pace.phase
        if phase == LOCAL:
            return super().run_turn(batches, steps)
        source = _numbered(batches)
        return (
            self._release(source) if phase == RELEASE else self._recall(source, steps)
        )

    def step(self, inputs: Any, labels: Any) -> float:
        """Train head, encoder and local tail on one batch; nothing is sent."""
        inputs, labels = to_device((inputs, labels), self.device)
        self.model.train()
        self.side.zero_grad()
        step = self.steps
        with self.model.seeded("head"):
            encoded = self.model.encode(self.side.activate(inputs))
        with self.model.seeded("tail"):
            output = self.side.decide_alone(encoded.sent)
        with self.model.seeded("loss"):
            loss = self.loss(output, labels)
        told = map_tensors(Tensor.detach, output)
        made = (encoded.activation, encoded.code, told, labels, encoded.latent)
        self.objective_values = {}
        view = ClientView(inputs, *made)
        torch.autograd.backward(self._with_objectives(loss, view, step))
        self.recipe.apply(self.side, self.pace, step)
        self.steps += 1
        return loss.item()

    def predict_test(self, inputs: Any, first: int) -> Tensor:
        """Return logits for test samples, whose codes are sent the first time."""
        inputs = to_device(inputs, self.device)
        at = StepId(self.index, self.steps, is_training=False)
        numbers = torch.arange(first, first + batch_size(inputs))
        if first >= self.tested:
            self._send(at, first, inputs)
            self.tested = first + len(numbers)
        self.model.eval()
        with torch.no_grad(), self.model.draws.prediction(self.index, self.steps):
            logits: Tensor = self.side.decode(self._output(at, numbers))
        return logits

    def _release(self, source: NumberedBatches) -> TurnReport:
        """Send the code of every sample; those that the server has are not repeated."""
        assert self.pace is not None  # noqa: S101  the phase comes from it
        first_step, steps, done = self.pace.first_step, self.pace.steps, self.pace.done
        for position in range(done, steps):
            numbers = source.in_order(position)
            inputs, _ = to_device(source.numbered(numbers), self.device)
            self.steps = first_step + position
            self._send(StepId(self.index, self.steps), int(numbers[0]), inputs)
        self.steps = first_step + steps
        return TurnReport(steps=steps)

    def _send(self, at: StepId, first: int, inputs: Any) -> None:
        """Send the codes of samples from number ``first`` on."""
        self.model.eval()
        pool = "train" if at.is_training else "test"
        scope = self.model.draws.release(self.index, pool, first)
        with torch.no_grad(), scope:
            code = self.model.encode(self.side.activate(inputs)).sent
        message = self.wire.write_release(at, first, code)
        self.releases.note(message)
        _check_noted(self.model.ask(message))

    def _recall(self, source: NumberedBatches, steps: int) -> TurnReport:
        """Train the tail, and the server, on codes that the server has."""
        report = TurnReport()
        for _ in range(steps):
            numbers = source.numbers(self.steps)
            _, labels = source.numbered(numbers)
            loss = self.recall_step(numbers, labels)
            report = report.after(len(numbers), loss, {})
        return report

    def recall_step(self, numbers: Tensor, labels: Any) -> float:
        """Train the tail, and the server, on one batch of released codes."""
        labels = to_device(labels, self.device)
        self.model.train()
        self.side.zero_grad()
        at = StepId(self.index, self.steps)
        output = self._output(at, numbers)
        received = output.values.detach().requires_grad_()
        with self.model.seeded("tail"):
            logits = self.side.decode(Code(received, output.side))
        with self.model.seeded("loss"):
            loss = self.loss(logits, labels)
        torch.autograd.backward(loss)
        if not self.model.forward_only:
            back = (
                torch.zeros_like(received) if received.grad is None else received.grad
            )
            request = self.wire.write_output_gradient(at, back.contiguous())
            _check_noted(self.model.ask(request))
        self.recipe.apply(self.side, self.pace, at.step)
        self.steps += 1
        return loss.item()

    def _output(self, at: StepId, numbers: Tensor) -> Code:
        """Return the server's output for codes that it has."""
        request = Recall(at.client, at.step, numbers.to(NUMBER), at.is_training)
        reply = as_output(self.model.ask(request))
        return self.wire.read_output(reply, is_training=at.is_training)


def _numbered(batches: BatchSource) -> NumberedBatches:
    if not isinstance(batches, NumberedBatches):
        raise ConfigError(
            "codes are sent once by the number of their sample: expected batches with "
            f"numbers, got {type(batches).__name__}"
        )
    return batches


def _check_noted(reply: Reply) -> None:
    if not isinstance(reply, Noted):
        raise ProtocolError(f"expected a note, got {type(reply).__name__}")
