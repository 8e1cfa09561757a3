"""The interface of an objective: a term that a client adds to its loss.

    loss + weight · objective(view)     view: inputs, activation, code, output, labels

An objective is computed at the client, from tensors that the client has anyway. Its
gradient reaches the activation and the code, and so the head. It never reaches the
server: the server's update is the same with and without it. That is why the output in
the view belongs to no graph.

An objective may also change what is sent (``disturb``), with random numbers that the
client's secret seeds: flipped bits, noise.

An objective may hold buffers and weights. They belong to the client's side: they are
trained, saved and handed on with it.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from lightsplit.codecs import Code, Codec
from lightsplit.errors import ConfigError
from lightsplit.part_facts import PartFacts
from lightsplit.registry import Registry


@dataclass(frozen=True, eq=False)
class ClientView:
    """The tensors of one training step that only the client has.

    Attributes:
        inputs: the inputs of the head, of any nesting.
        activation: the head's output, with its graph.
        code: the code of the activation, with its graph.
        output: the tail's output, without a graph; None if the server has the tail.
        labels: the labels of the inputs, of any nesting.
        latent: the code before the codec rounded it, with its graph; without rounding
            the values of the code.
    """

    inputs: Any
    activation: Tensor
    code: Code
    output: Tensor | None
    labels: Any
    latent: Tensor


class Objective(nn.Module):
    """A term of a client's loss.

    Attributes:
        name: the registered name.
        facts: what a user should know before choosing it.

    A run fills in the arguments ``codec`` (of the front cut) and ``classes`` (their
    number, None where labels are no classes) of a constructor that has them.
    """

    name: ClassVar[str]
    facts: ClassVar[PartFacts] = PartFacts()

    def check(self, codec: Codec, *, has_tail: bool) -> None:
        """Refuse a run in which this objective makes no sense.

        Args:
            codec: the codec of the front cut.
            has_tail: whether the client has the tail, and so an output.
        """

    def disturb(self, code: Code) -> Code:
        """Return the code as it is to be sent; most objectives leave it as it is.

        In training and in prediction (``self.training`` tells which), torch's generator
        is seeded from the client's secret around this call.
        """
        return code

    def forward(self, view: ClientView) -> Tensor:
        """Return the value for one batch, a scalar."""
        raise NotImplementedError


class WeightedObjective(NamedTuple):
    """An objective and its weight; a weight of 0 only measures it."""

    objective: Objective
    weight: float

    def check(self, codec: Codec, *, has_tail: bool) -> None:
        """Refuse an invalid weight, and a run that the objective refuses."""
        if not (self.weight >= 0 and math.isfinite(self.weight)):
            raise ConfigError(
                f"the weight of {self.objective.name} must be a finite number of 0 or "
                f"more, got {self.weight}"
            )
        self.objective.check(codec, has_tail=has_tail)


OBJECTIVES: Registry[Objective] = Registry("objective", "lightsplit.objectives")
