"""The client's half of a training step, as in the paper's twenty steps.

    head · encoder ─► code ─► [server] ─► output ─► tail ─► loss
                        ▲                              │
       ∂loss/∂code + Σ weight · ∂objective/∂code ◄── one backward pass

The model's forward and backward talk to the server (``client_model``). Objectives are
added to the loss here; the server's messages do not depend on them.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lightsplit.codecs import Code
from lightsplit.errors import ConfigError
from lightsplit.formats import WireFormats
from lightsplit.nesting import batch_size, map_tensors, to_device
from lightsplit.objectives import ClientView
from lightsplit.protections import LabelProtection, protected
from lightsplit.protocol import Wire
from lightsplit.protocol.phases import TRAIN
from lightsplit.runtime.averaging import Averaging
from lightsplit.runtime.client_model import ClientModel, Protect
from lightsplit.runtime.encoded import Encoded
from lightsplit.runtime.hand_off import HandOff
from lightsplit.runtime.inspector import Inspector
from lightsplit.runtime.recipe import Pace, Recipe
from lightsplit.runtime.secret import Secret
from lightsplit.runtime.server import Loss
from lightsplit.runtime.side import ClientSide, State
from lightsplit.runtime.turn import BatchSource, TurnReport
from lightsplit.runtime.weight_averaging import WeightAveraging
from lightsplit.transports import Send


class Client:
    """Trains its side against a server that it reaches by ``send``.

    Args:
        side: the modules that this client runs; shared heads are one side in many
            clients.
        send: carries a message to the server and returns the reply;
            ``server.handle`` in one process.
        index: which client this is.
        secret: seeds everything that this client draws; without it Secret(0), which
            hides nothing.
        loss: of logits and labels, a mean over the batch.
        device: where the modules are.
        formats: how numbers travel; must be the server's.
        hand_off: how a shared side travels; must be the other clients'.
        inspector: examines the gradients that the server sends back.
        forward_only: whether no gradient is sent; must be the server's.
        recipe: how gradients become updates; must be the server's.
        protections: change the output gradients that are sent, so that they reveal less
            about labels.

    Attributes:
        model: this client's half as a module.
        pace: of the turn under way, if the steps belong to a run.
        objective_values: of the last step, by name; empty after a probe.
        last_turn: the report of the last turn that had steps.
        kept: the part of a shared side that stayed here at the last hand-off.
        averaging: averages this client's gradients with those of the other owners of a
            round; None if the client uses its own gradients.
        weight_averaging: averages this client's weights with those of the other owners
            after every turn; None if weights are not averaged.
    """

    def __init__(  # noqa: PLR0913
        self,
        side: ClientSide,
        send: Send,
        *,
        index: int = 0,
        secret: Secret | None = None,
        loss: Loss = cross_entropy,
        device: torch.device | None = None,
        formats: WireFormats | None = None,
        hand_off: HandOff | None = None,
        inspector: Inspector | None = None,
        forward_only: bool = False,
        recipe: Recipe | None = None,
        protections: Sequence[LabelProtection] = (),
    ) -> None:
        if side.optimizer is None and side.is_trainable:
            raise ConfigError(
                "expected a side with an optimizer, got none: give ClientSide one, or "
                "train a ClientModel with your own"
            )
        self.side = side
        self.model = ClientModel(
            side,
            send,
            index=index,
            secret=secret,
            formats=formats,
            forward_only=forward_only,
        )
        self.loss = loss
        self.device = device
        self.hand_off = hand_off or HandOff(side)
        self.inspector = inspector
        self.recipe = recipe or Recipe()
        self.protections = tuple(one for one in protections if one.protects_gradients)
        self.pace: Pace | None = None
        self.objective_values: dict[str, float] = {}
        self.last_turn: TurnReport | None = None
        self.kept: State = {}
        self.averaging: Averaging | None = None
        self.weight_averaging: WeightAveraging | None = None

    @property
    def wire(self) -> Wire:
        """How this client writes and reads messages."""
        return self.model.wire

    @property
    def send(self) -> Send:
        """How a message reaches the server."""
        return self.model.send

    @send.setter
    def send(self, send: Send) -> None:
        self.model.send = send

    @property
    def index(self) -> int:
        """Which client this is."""
        return self.model.index

    @index.setter
    def index(self, index: int) -> None:
        self.model.index = index

    @property
    def steps(self) -> int:
        """How many steps are over."""
        return self.model.steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self.model.steps = steps

    def step(self, inputs: Any, labels: Any) -> float:
        """Train on one batch and return its loss, without objectives."""
        inputs, labels = to_device((inputs, labels), self.device)
        self.model.train()
        self.side.zero_grad()
        if self.averaging is not None:
            self.averaging.begin(self.side)
        step, probe = self.steps, self._probe(labels)
        used = labels if probe is None else probe
        encoded, output, loss = self._forward(inputs, used, is_probe=probe is not None)
        self.objective_values = {}
        if probe is not None:  # the server is tried, the client learns nothing
            torch.autograd.backward(loss)
            return loss.item()
        view = ClientView(
            inputs, encoded.activation, encoded.code, output, labels, encoded.latent
        )
        torch.autograd.backward(self._with_objectives(loss, view, step))
        self._learn(step, batch_size(labels))
        return loss.item()

    def run_turn(self, batches: BatchSource, steps: int) -> TurnReport:
        """Train on the next ``steps`` batches."""
        report = TurnReport()
        if self.weight_averaging is not None:
            self.weight_averaging.begin(self.side)
        for _ in range(steps):
            inputs, labels = batches.batch(self.steps)
            loss = self.step(inputs, labels)
            report = report.after(batch_size(labels), loss, self.objective_values)
        if steps:
            self._average(report.samples)
            self.last_turn = report
        return report

    def predict(self, inputs: Any) -> Tensor:
        """Return logits with every module in evaluation mode; nothing is trained."""
        prediction: Tensor = self.model.eval()(to_device(inputs, self.device))
        return prediction

    def predict_test(self, inputs: Any, first: int) -> Tensor:
        """Return logits for test samples from number ``first`` on.

        Where codes are sent once, so are those of test samples; here they are sent at
        every evaluation. An evaluation repeated after the same step draws the same
        noise.
        """
        if first == 0:
            self.model.draws.begin_evaluation()
        return self.predict(inputs)

    def hand_on(self) -> State:
        """Return the side as it travels to the next client."""
        travels, self.kept = self.hand_off.write(
            self.side.state(),
            self.kept,
            client=self.index,
            step=self.steps,
            phase=TRAIN if self.pace is None else self.pace.phase,
        )
        return travels

    def take_over(self, written: State) -> None:
        """Continue with the side that another client handed on."""
        self.side.load(self.hand_off.read(written, self.kept))

    def take_seat(self) -> None:
        """Continue with the side that is at hand, and with this client's own optimizer.

        In one process the clients hold one side. Where the optimizer's state travels,
        there is nothing to do.
        """
        if self.hand_off.optimizer_stays:
            self.side.load_optimizer(self.hand_off.own_optimizer(self.kept))

    def _learn(self, step: int, samples: int) -> None:
        """Update the side by the gradients at hand, or by the mean of a round's."""
        if self.averaging is not None:
            at = (self.index, step)
            total = self.averaging.exchange(self.side, self.send, at, samples)
            if not self.averaging.apply(self.side, total):
                return
        self.recipe.apply(self.side, self.pace, step)

    def _average(self, samples: int) -> None:
        """Take over the mean of the sides that all owners of a round have trained."""
        if self.weight_averaging is not None:
            at = (self.index, self.steps - 1)
            averaging = self.weight_averaging
            total = averaging.exchange(self.side, self.send, at, samples)
            averaging.apply(self.side, total)

    def _probe(self, labels: Any) -> Any:
        if self.inspector is None:
            return None
        return self.inspector.probe(self.steps, labels)

    def _watched(self, code: Code, labels: Any, *, is_probe: bool) -> Code:
        """Return the code to send; the inspector will see the gradient at it.

        It is a tensor of its own, so that its gradient is the one that was received,
        without those of objectives. A probe's gradient ends there.
        """
        inspector, step = self.inspector, self.steps
        if inspector is None:
            return code
        values = code.values
        if is_probe or not values.requires_grad:
            sent = values.detach().requires_grad_()
        else:
            sent = values.view_as(values)

        def look(gradient: Tensor) -> None:
            inspector.observe(step, values, labels, gradient)

        sent.register_hook(look)  # type: ignore[no-untyped-call]
        return Code(sent, code.side)

    def _forward(
        self, inputs: Any, labels: Any, *, is_probe: bool
    ) -> tuple[Encoded, Any, Tensor]:
        """Return code and output of a batch, where the client has one, and its loss."""

        def watch(encoded: Encoded) -> Code:
            return self._watched(encoded.sent, labels, is_probe=is_probe)

        if not self.side.has_tail:
            encoded, loss = self.model.run(inputs, labels, watch)
            return encoded, None, loss
        encoded, output = self.model.run(
            inputs, watch=watch, protect=self._protect(labels)
        )
        with self.model.seeded("loss"):
            loss = self.loss(output, labels)
        return encoded, map_tensors(Tensor.detach, output), loss

    def _protect(self, labels: Any) -> Protect | None:
        """Return what changes the output gradient before it is sent, if anything."""
        if not self.protections:
            return None
        return partial(protected, self.protections, labels)

    def _with_objectives(self, loss: Tensor, view: ClientView, step: int) -> Tensor:
        total = loss
        for objective, weight in self.side.objectives:
            with self.model.seeded(f"objective {objective.name}", step):
                value = objective(view)
            self.objective_values[objective.name] = value.item()
            if weight:
                total = total + weight * value
        return total
