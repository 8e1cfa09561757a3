"""The interface of an objective: a term that a client adds to its loss.

    loss + weight · objective(view)     view: inputs, activation, code, output, labels

The client computes an objective from tensors that it has anyway. The gradient reaches
the activation and the code, and so the head. It never reaches the server: the server's
update is the same with and without it. That is why the output in the view belongs to no
graph.

An objective may also change what is sent, with random numbers that the client's secret
seeds:

    activation ──cover──► encoder ──► code ──disturb──► [server] ──► output ──uncover──►

``disturb`` changes the code: flipped bits, noise. ``cover`` changes the activation
before it is encoded, and may return a function that undoes this at the output, such as
putting tokens back in order.

An objective may hold buffers and weights. They belong to the client's side: they are
trained, saved and handed on with it.
"""

import math
from collections.abc import Callable, Iterable
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


class Covered(NamedTuple):
    """An activation in the form that is to be encoded.

    Attributes:
        activation: of the shape of the head's.
        uncover: returns the output that the tail takes, given the server's output; None
            if there is nothing to undo.
    """

    activation: Tensor
    uncover: Callable[[Tensor], Tensor] | None = None


class ServerPart(NamedTuple):
    """The network between the cuts, for objectives that depend on what it does.

    Attributes:
        module: from activations to what the server returns: outputs in the form that
            the tail takes, or the result if the server has the tail. Its weights need
            not be the server's.
        example: activations of the task's example batch.
        shares: names of the inputs that the server gets besides.
        has_tail: whether the server has the tail.
    """

    module: nn.Module
    example: Tensor
    shares: tuple[str, ...] = ()
    has_tail: bool = False


class Objective(nn.Module):
    """A term of a client's loss.

    Attributes:
        name: the registered name.
        facts: what a user should know before choosing it.
        needs_frozen_client: whether it makes sense only where head and tail stay as
            they are.
        releases: how often the code of a sample may be sent; None for any number.
        undoes_outputs: whether ``cover`` has something to undo at the output.

    If a constructor has these arguments, a run fills them in:

    * ``codec``: of the front cut;
    * ``classes``: their number, None where labels are no classes;
    * ``input_shape``: of one sample, None where inputs are not one tensor of numbers;
    * ``releases``: how often the code of a sample is sent;
    * ``server``: what lies between the cuts, a ``ServerPart``.
    """

    name: ClassVar[str]
    facts: ClassVar[PartFacts] = PartFacts()
    needs_frozen_client: ClassVar[bool] = False
    undoes_outputs: bool = False
    releases: int | None = None

    @property
    def changes_what_is_sent(self) -> bool:
        """Whether it covers activations or disturbs codes."""
        own = type(self)
        return (own.cover, own.disturb) != (Objective.cover, Objective.disturb)

    def check(self, codec: Codec, *, has_tail: bool) -> None:
        """Refuse a run in which this objective makes no sense.

        Args:
            codec: the codec of the front cut.
            has_tail: whether the client has the tail, and so an output.
        """

    def cover(self, activation: Tensor) -> Covered:
        """Return the activation to encode, seeded as for ``disturb``."""
        return Covered(activation)

    def disturb(self, code: Code) -> Code:
        """Return the code as it is to be sent; most objectives leave it as it is.

        In training and in prediction (``self.training`` tells which), torch's generator
        is seeded from the client's secret around this call.
        """
        return code

    def forward(self, view: ClientView) -> Tensor:
        """Return the value for one batch, a scalar."""
        raise NotImplementedError


def cover(objectives: Iterable[Objective], activation: Tensor) -> Covered:
    """Return the activation after all of these objectives have covered it."""
    undoing = []
    for objective in objectives:
        activation, uncover = objective.cover(activation)
        undoing += [] if uncover is None else [uncover]

    def undo(output: Tensor) -> Tensor:
        for uncover in reversed(undoing):
            output = uncover(output)
        return output

    return Covered(activation, undo if undoing else None)


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
