"""Shredder: learned noise for a network that does not change.

    sent for z:  z + n_j        j: drawn for each sample from the client's secret
    learned:     least  task loss − weight · mean |n|

Head, backbone and tail are already trained, and frozen. The client learns M tensors of
noise in the activation's shape, as large as the task allows. The task's gradient comes
from the server as in any step. Noise stops growing once its variance is ``enough``
times the mean square of the activations (the source's in-vivo privacy, one over the
signal-to-noise ratio).

A caution: a tensor that does not change is an offset, which an attacker learns. Only
the choice among the M tensors is random, log₂ M bits for a sample; the decoder of an
audit learns the rest from pairs.

We differ from the paper: all M tensors learn in one run, each from the samples that
drew it, not in M runs. The growth is a mean over values, not a sum, so that a weight
means the same at every cut. Mireshghallah et al.: Shredder: learning noise
distributions to protect inference privacy, ASPLOS 2020.
"""

import torch
from torch import Tensor, nn

from lightsplit.codecs import Codec
from lightsplit.errors import ConfigError
from lightsplit.objectives.base import OBJECTIVES, ClientView, Covered, Objective
from lightsplit.part_facts import PartFacts


@OBJECTIVES.register("shredder")
class Shredder(Objective):
    """Adds one of a few learned tensors of noise, to a network that stays as it is.

    Args:
        codec: the codec of the front cut.
        tensors: tensors of noise, M; default: 16.
        scale: scale of the Laplace noise that the tensors start as; default: 1.
        enough: variance of the noise, over the mean square of activations, at which it
            stops growing; default: 4.
    """

    name = "shredder"
    facts = PartFacts(
        source="Mireshghallah et al., ASPLOS 2020",
        assumes="pre-trained weights; head, backbone and tail stay as they are",
        client_cost="M tensors of the activation's size; an addition for each value",
        attacker="learns the M tensors from pairs; averages over releases",
        status="adapted",
    )
    needs_frozen_client = True

    def __init__(
        self,
        codec: Codec,
        *,
        tensors: int = 16,
        scale: float = 1.0,
        enough: float = 4.0,
    ) -> None:
        super().__init__()
        if not (tensors >= 1 and scale > 0 and enough > 0):
            raise ConfigError(
                "shredder needs at least 1 tensor, and a scale and an enough above 0, "
                f"got {tensors}, {scale} and {enough}"
            )
        self.enough = enough
        first = torch.empty(tensors, *codec.shape).exponential_()
        second = torch.empty_like(first).exponential_()
        self.noise = nn.Parameter(scale * (first - second))

    def cover(self, activation: Tensor) -> Covered:
        """Return the activation with a tensor of noise for each sample."""
        device = activation.device
        drawn = torch.randint(len(self.noise), (len(activation),), device=device)
        return Covered(activation + self.noise[drawn])

    def privacy(self, activation: Tensor) -> float:
        """Return the variance of the noise over the mean square of activations."""
        signal = activation.detach().square().mean().clamp(min=1e-12)
        return float(self.noise.detach().var() / signal)

    def forward(self, view: ClientView) -> Tensor:
        """Return minus the mean size of the noise; 0 once it is large enough."""
        if self.privacy(view.activation) >= self.enough:
            return view.latent.new_zeros(())
        return -self.noise.abs().mean()
