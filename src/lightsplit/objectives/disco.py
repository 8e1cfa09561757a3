"""DISCO: a pruner that drops the channels an adversary would read inputs from.

    activation z ──pruner──► scores s, one per channel
    z′ = z · sigmoid((s − s₍p₎) / τ)          s₍p₎: the score below which a share p lies
    adversary    least ‖D(z′) − x‖²           head    least task loss
    pruner       least task loss − weight · ‖D(z′) − x‖²

The client runs both: the adversary D learns to rebuild inputs from pruned activations,
and the pruner learns which channels to drop for each sample so that D fails and the
task does not. Head and server learn from the task alone. Pruned channels travel as
numbers near zero; a codec that sends only kept positions would save their bytes, but
raw does not.

We differ from the paper in three ways. Pruner and adversary are small networks, not
ResNets. All three learn in one backward pass with the client's own optimizer: the
reconstruction error runs back with its sign turned where it reaches the pruner. And the
head learns through the channels themselves, not through their scores. With a weight w
the published α is w / (1 + w).

Singh, Chopra, Garza, et al.: DISCO: dynamic and invariant sensitive channel obfuscation
for deep neural networks, CVPR 2021.
"""

import math

from torch import Tensor, nn
from torch.nn.functional import mse_loss

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Covered, Objective
from lightsplit.part_facts import PartFacts

TEMPERATURE = 1 / 30  # τ, as in the authors' code


@OBJECTIVES.register("disco")
class Disco(Objective):
    """Drops channels that an adversary at the client could rebuild inputs from.

    Args:
        codec: the codec of the front cut.
        input_shape: shape of one input.
        pruned: share of the channels that are dropped for each sample; default: 0.9.
        width: channels, or hidden values, of pruner and adversary; default: 32.
    """

    name = "disco"
    facts = PartFacts(
        source="Singh et al., CVPR 2021",
        assumes="inputs that are one tensor of numbers",
        client_cost="two networks: a pruner in every pass, an adversary in training",
        attacker="a decoder of pruned activations, stronger than the client's own",
        status="adapted",
    )

    def __init__(
        self,
        codec: Codec,
        input_shape: tuple[int, ...] | None,
        *,
        pruned: float = 0.9,
        width: int = 32,
    ) -> None:
        super().__init__()
        if input_shape is None:
            raise ConfigError(
                "disco rebuilds inputs that are one tensor of numbers; this task has "
                "other inputs"
            )
        if not (0 <= pruned < 1 and width >= 1):
            raise ConfigError(
                "disco needs a pruned share from 0 to below 1 and a width of 1 or "
                f"more, got {pruned} and {width}"
            )
        self.dropped = min(math.floor(pruned * codec.shape[0]), codec.shape[0] - 1)
        self.pruner = _pruner(codec.shape, width)
        self.adversary = _adversary(codec.shape, input_shape, width)

    def cover(self, activation: Tensor) -> Covered:
        """Return the activation without the channels that are dropped."""
        return Covered(self.prune(activation))

    def prune(self, activation: Tensor) -> Tensor:
        """Return (B, C, …) times a number from 0 to 1 for each channel."""
        scores: Tensor = self.pruner(activation.detach())
        if not self.dropped:
            return activation
        limit = scores.sort(dim=1).values[:, self.dropped - 1 : self.dropped]
        kept = ((scores - limit) / TEMPERATURE).sigmoid()
        return activation * kept.view(*kept.shape, *[1] * (activation.ndim - 2))

    def forward(self, view: ClientView) -> Tensor:
        """Return the adversary's error; the pruner is driven the other way."""
        pruned = self.prune(view.activation.detach())
        turned = 2 * pruned.detach() - pruned  # the same numbers, a negative gradient
        return mse_loss(self.adversary(turned), view.inputs)


def _pruner(shape: tuple[int, ...], width: int) -> nn.Module:
    """Return a network from activations to a score for each channel."""
    if len(shape) == 3:
        look = [nn.Conv2d(shape[0], width, 3, padding=1), nn.ReLU()]
        return nn.Sequential(
            *look, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, shape[0])
        )
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), width),
        nn.ReLU(),
        nn.Linear(width, shape[0]),
    )


def _adversary(
    shape: tuple[int, ...], input_shape: tuple[int, ...], width: int
) -> nn.Module:
    """Return a network from pruned activations to inputs."""
    if len(shape) == len(input_shape) == 3:
        return nn.Sequential(
            nn.Conv2d(shape[0], 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Upsample(size=input_shape[1:]),
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, input_shape[0], 3, padding=1),
        )
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), 4 * width),
        nn.ReLU(),
        nn.Linear(4 * width, math.prod(input_shape)),
        nn.Unflatten(1, input_shape),
    )
