"""One iteration of FORA, in the order of the released code.

    known images ─► substitute ─► features ◄── made alike ──► the victim's features
                                     │
                                     ▼
                                  decoder ─► image

    1  substitute: (1-a) · critic's mean + a · discrepancy to the victim's features
    2  decoder: squared error on the substitute's features, which are made again
    3  critic: low on the victim's, high on the substitute's as they were before 1;
       1,000 times the gradient penalty

What may surprise: nothing pairs an image with its features. A substitute that sees
every picture as its negative can match the distribution just as well, and the decoder
then returns negatives. The audit scores such a result both ways.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from lightsplit.attacks import fora_networks as networks
from lightsplit.attacks.divergences import gradient_penalty, multi_kernel_mmd
from lightsplit.attacks.learner import Learner, descend
from lightsplit.attacks.lifts import learned_lift
from lightsplit.attacks.memory_order import suited_to_convolutions
from lightsplit.codecs import Code, Codec


@dataclass(frozen=True)
class Settings:
    """Rates and weights; the defaults are those of the released command.

    Attributes:
        lr: of substitute and decoder.
        critic_lr: of the critic.
        discrepancy: the share a of the discrepancy in the substitute's loss.
        penalty: weight of the gradient penalty.
        width: channels of the critic's widest layers.
    """

    lr: float = 1e-4
    critic_lr: float = 3e-4
    discrepancy: float = 0.8
    penalty: float = 1000.0
    width: int = networks.CRITIC_WIDTH


class Substitute(nn.Module):
    """Stands in for the client: images in [-1, 1] to features of the victim's kind."""

    def __init__(
        self, network: nn.Module, encoder: nn.Module | None, received: nn.Module
    ) -> None:
        super().__init__()
        self.network = network
        self.encoder = encoder
        self.received = received

    def forward(self, images: Tensor) -> Tensor:
        """Return activations, or the values of codes where it ends in a codec."""
        features: Tensor = self.network(images)
        if self.encoder is None:
            return features
        values: Tensor = self.received(self.encoder(features).values)
        return values


class Imitation:
    """The networks of FORA, which learn from the victim's features.

    Args:
        codec: as the server knows it.
        received: rounds values as the wire format of codes does.
        image: shape of an image.
        works_on_codes: whether the substitute ends in the codec, and critic and decoder
            start from codes with lifts of their own; else all see activations, the
            victim's lifted by the server's decoder.
    """

    def __init__(
        self,
        codec: Codec,
        received: nn.Module,
        *,
        image: Sequence[int],
        settings: Settings,
        works_on_codes: bool,
        device: torch.device,
    ) -> None:
        lifts = [learned_lift(codec) if works_on_codes else None for _ in range(2)]
        self.has_lift = lifts[0] is not None
        self.settings = settings
        shape, size = codec.shape, tuple(image)
        substitute = networks.make_substitute(shape, size)
        critic = networks.make_critic(shape, settings.width)
        made: dict[str, tuple[nn.Module, float]] = {
            "substitute": (
                Substitute(
                    substitute, codec.encoder if self.has_lift else None, received
                ),
                settings.lr,
            ),
            "critic": (after(lifts[0], critic), settings.critic_lr),
            "decoder": (
                after(lifts[1], networks.make_decoder(shape, size)),
                settings.lr,
            ),
        }
        self.learners = {
            name: Learner(network.to(device).train(), lr)
            for name, (network, lr) in made.items()
        }

    def entrance(self, code: Code, server: nn.Module) -> Tensor:
        """Return the victim's features: its codes, or the server's activations."""
        if self.has_lift:
            return code.values
        lifted: Tensor = server.decoder(code)  # type: ignore[operator]
        return lifted

    def learn(self, victims: Tensor, images: Tensor) -> None:
        """Do one iteration with the victim's features and known images in [0, 1]."""
        images, victims = (
            suited_to_convolutions(each) for each in (images * 2 - 1, victims)
        )
        before = self._network("substitute")(images)
        by_features, by_weights = self._verdict(before)
        self._improve_substitute(victims, before, by_features)
        self._improve_decoder(images)
        self._improve_critic(victims, before.detach(), by_weights)
        with torch.no_grad():
            # Moves the decoder's running statistics, as the released code does.
            self._network("decoder")(victims)

    @torch.no_grad()
    def decode(self, features: Tensor) -> Tensor:
        """Return images in [0, 1], with the decoder in evaluation mode."""
        decoder = self._network("decoder").eval()
        images: Tensor = decoder(features) / 2 + 0.5
        decoder.train()
        return images

    def _verdict(self, features: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the slopes of the critic's mean, by features and by its own weights.

        The critic does not change before its own step, and nothing in it looks at a
        batch: one pass serves the substitute and the critic.
        """
        critic = self.learners["critic"]
        mean = critic.network(features).mean()
        by_features, *by_weights = torch.autograd.grad(
            mean, [features, *critic.weights]
        )
        return by_features, by_weights

    def _improve_substitute(
        self, victims: Tensor, features: Tensor, slopes: Tensor
    ) -> None:
        share = self.settings.discrepancy
        discrepancy = share * multi_kernel_mmd(victims, features)
        pull = (1 - share) * slopes
        descend([self.learners["substitute"]], [discrepancy, features], [None, pull])

    def _improve_decoder(self, images: Tensor) -> None:
        with torch.no_grad():
            features = self._network("substitute")(images)
        loss = mse_loss(self._network("decoder")(features), images)
        descend([self.learners["decoder"]], [loss])

    def _improve_critic(
        self, victims: Tensor, features: Tensor, slopes: list[Tensor]
    ) -> None:
        """Lower it on the victim's features, raise it along its known slopes."""
        critic = self.learners["critic"]
        penalty = gradient_penalty(critic.network, features, victims)
        loss = critic.network(victims).mean() + self.settings.penalty * penalty
        raising = [-slope for slope in slopes]
        descend([critic], [loss, *critic.weights], [None, *raising])

    def _network(self, name: str) -> nn.Module:
        return self.learners[name].network


def after(lift: nn.Module | None, network: nn.Module) -> nn.Module:
    """Return the network, behind the lift if there is one."""
    return network if lift is None else nn.Sequential(lift, network)
