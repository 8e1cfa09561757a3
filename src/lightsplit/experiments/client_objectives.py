"""The terms that a client adds to its loss, made for the cuts of an experiment.

The run fills in the arguments that a constructor has; ``objectives.base`` lists them.
An objective's weights are drawn like the head's: from the client's secret.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lightsplit.errors import ConfigError
from lightsplit.experiments.config import Experiment
from lightsplit.objectives import (
    OBJECTIVES,
    Objective,
    ServerPart,
    WeightedObjective,
)
from lightsplit.runtime import Secret

if TYPE_CHECKING:
    from lightsplit.experiments.cuts import Cuts


def make_objectives(experiment: Experiment, cuts: "Cuts") -> list[WeightedObjective]:
    """Return the terms that a client adds to its loss."""
    known: dict[str, Callable[[], Any]] = {
        "codec": lambda: cuts.codec,
        "classes": lambda: experiment.make_task().classes,
        "input_shape": lambda: _input_shape(experiment.make_task().example_inputs()),
        "releases": lambda: experiment.releases,
        "server": lambda: _server_part(experiment, cuts),
    }
    drawn_from = cuts.first_weights or Secret(experiment.seed)
    found = []
    for name, term in experiment.objective.items():
        taken = inspect.signature(OBJECTIVES.get(name)).parameters
        given = {key: find() for key, find in known.items() if key in taken}
        with drawn_from.scope("objective", name):
            objective = OBJECTIVES.create(name, **given, **term.options)
        _check(experiment, objective)
        found.append(WeightedObjective(objective, term.weight))
    return found


def _check(experiment: Experiment, objective: Objective) -> None:
    if objective.needs_frozen_client and not experiment.split.freeze_client:
        raise ConfigError(
            f"{objective.name} is for a network that stays as it is: give its "
            "--weights, --freeze-client and --freeze-backbone"
        )
    if objective.undoes_outputs and experiment.sends_once:
        raise ConfigError(
            f"{objective.name} undoes at the output what it did to an activation, and "
            "where codes are sent once the two are far apart: drop release"
        )


def _input_shape(inputs: Any) -> tuple[int, ...] | None:
    if isinstance(inputs, Tensor) and inputs.is_floating_point():
        return tuple(inputs.shape[1:])
    return None


def _server_part(experiment: Experiment, cuts: "Cuts") -> ServerPart:
    """Return the network between the cuts, with the weights that are at hand."""
    task = experiment.make_task()
    parts = cuts.parts
    tail = None if experiment.split.topology == "u" else parts.tail
    was_training = parts.whole.training
    parts.whole.eval()
    with torch.no_grad():
        example, _ = parts.example_of(task.example_inputs())
    parts.whole.train(was_training)
    module = _Between(parts.backbone, cuts.output_codec, tail)
    return ServerPart(module, example, tuple(task.share), tail is not None)


class _Between(nn.Module):
    """Backbone and back cut: from activations to what the server returns."""

    def __init__(
        self, backbone: nn.Module, output_codec: Any, tail: nn.Module | None
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.encoder = None if output_codec is None else output_codec.encoder
        self.decoder = None if output_codec is None else output_codec.decoder
        self.tail = tail

    def forward(self, activation: Tensor) -> Tensor:
        """Return the output in the tail's form, or the result of the tail."""
        output: Tensor = self.backbone(activation)
        if self.tail is not None:
            output = self.tail(output)
        if self.encoder is None or self.decoder is None:
            return output
        lifted: Tensor = self.decoder(self.encoder(output))
        return lifted
