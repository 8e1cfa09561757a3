"""One iteration of SDAR, in the order of the released code.

    known images ─► simulator ─► code ─► server's own network (─► simulated tail)
                                  │ told from the victim's code by a discriminator
                                  ▼
                               decoder ─► image     told from images by another one

    1  simulator (and tail): cross-entropy + λ1 · (pass for the victim)
       its discriminator: from the same forward pass
    2  decoder: squared error on the simulator's codes + λ2 · (the victim's decoded
       codes pass for images); its discriminator: from the same forward pass

Losses are sums over the batch and Adam's epsilon is 1e-7, as in Keras. The rates of the
discriminators are those of simulator and decoder times λ. The server's network runs in
evaluation mode on a copy of its weights, so neither the weights nor the running
statistics change. Real and fake batches pass separately, because BatchNorm normalises
by the batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from lightsplit.attacks import sdar_networks as networks
from lightsplit.attacks.knowledge import LabelledImages
from lightsplit.attacks.learner import Learner, descend
from lightsplit.attacks.lifts import learned_lift
from lightsplit.attacks.steps import Seen
from lightsplit.codecs import Code, Codec
from lightsplit.objectives import within_class_compaction

KERAS_EPSILON = 1e-7


@dataclass(frozen=True)
class Settings:
    """Rates and weights; the defaults are the released ones for CIFAR-10.

    Attributes:
        simulator_lr: of the simulator and the simulated tail.
        decoder_lr: of the decoder.
        simulator_weight: λ1.
        decoder_weight: λ2.
        flip_rate: share of the known labels that are drawn anew where the server has no
            labels of the victim's.
        wcc: the strength of within-class compaction that the attacker assumes; the
            client does not send it.
        width: channels of the discriminators' widest layers.
    """

    simulator_lr: float = 1e-3
    decoder_lr: float = 5e-4
    simulator_weight: float = 0.02
    decoder_weight: float = 1e-5
    flip_rate: float = 0.2
    wcc: float = 0.0
    width: int = 256


@dataclass(frozen=True, eq=False)
class Copies:
    """The networks that the attacker builds from its knowledge of the run.

    Attributes:
        head: of the victim's architecture, with fresh weights.
        tail: like the victim's, with fresh weights; None if the server has the tail.
        server: the server's own network, frozen; its ``decoder`` lifts codes.
        codec: as the server knows it.
        received: rounds values as the wire format of codes does.
    """

    head: nn.Module
    tail: nn.Module | None
    server: nn.Module
    codec: Codec
    received: nn.Module


class SimulatedClient(nn.Module):
    """A head like the victim's and the codec's encoder: images to received codes."""

    def __init__(self, copies: Copies) -> None:
        super().__init__()
        self.head = copies.head
        self.encoder = copies.codec.encoder
        self.received = copies.received

    def forward(self, images: Tensor) -> Code:
        """Return the code of the images as a server reads it."""
        values, side = self.encoder(self.head(images))
        return Code(self.received(values), side)


class Adversary:
    """The networks of SDAR, which learn from each other.

    Args:
        copies: of the victim's and the server's networks.
        cut: the facts that the other networks depend on.
        learns_lift: whether decoder and discriminator start from codes with lifts of
            their own, and not from codes that the server's decoder has lifted.
    """

    def __init__(
        self,
        copies: Copies,
        cut: networks.Cut,
        *,
        settings: Settings,
        learns_lift: bool,
        device: torch.device,
    ) -> None:
        lifts = [learned_lift(copies.codec) if learns_lift else None for _ in range(2)]
        self.has_lift = lifts[0] is not None
        self.server = copies.server
        self.settings = settings
        made: dict[str, tuple[nn.Module, float]] = {
            "simulator": (SimulatedClient(copies), settings.simulator_lr),
            "activation_judge": (
                networks.make_activation_discriminator(cut, lifts[0]),
                settings.simulator_lr * settings.simulator_weight,
            ),
            "decoder": (networks.make_decoder(cut, lifts[1]), settings.decoder_lr),
            "image_judge": (
                networks.make_image_discriminator(cut),
                settings.decoder_lr * settings.decoder_weight,
            ),
        }
        if copies.tail is not None:
            made["tail"] = (copies.tail, settings.simulator_lr)
        self.learners = {
            name: Learner(network.to(device).train(), lr, eps=KERAS_EPSILON)
            for name, (network, lr) in made.items()
        }

    def learn(self, seen: Seen, known: LabelledImages) -> None:
        """Do one iteration with a batch of the victim's and one of known images."""
        victims = self.entrance(seen.code)
        self._improve_simulator(victims, seen.labels, known)
        self._improve_decoder(victims, seen.labels, known)

    def entrance(self, code: Code) -> Tensor:
        """Return the code as decoder and discriminator take it."""
        if self.has_lift:
            return code.values
        lifted: Tensor = self.server.decoder(code)  # type: ignore[operator]
        return lifted

    @torch.no_grad()
    def decode(self, seen: Seen) -> Tensor:
        """Return the images, with the decoder in evaluation mode."""
        decoder = self._network("decoder").eval()
        images: Tensor = decoder(self.entrance(seen.code), seen.labels)
        decoder.train()
        return images

    @torch.no_grad()
    def classify(self, code: Code) -> Tensor:
        """Return the labels that the simulated tail infers from the victim's codes."""
        tail = self._network("tail").eval()
        logits: Tensor = tail(self.server(code))
        tail.train()
        return logits.argmax(dim=1)

    def _improve_simulator(
        self, victims: Tensor, told: Tensor | None, known: LabelledImages
    ) -> None:
        code = self._network("simulator")(known.images)
        task = self._task_loss(code, known.labels)
        entrance = self.entrance(code)
        judge = self._network("activation_judge")
        fake = judge(entrance, None if told is None else known.labels)
        real = judge(victims, told)
        (passing,) = torch.autograd.grad(_is(fake, 1), entrance, retain_graph=True)
        descend([self.learners["activation_judge"]], [_is(real, 1) + _is(fake, 0)])
        named = ("simulator", "tail")
        improving = [one for name, one in self.learners.items() if name in named]
        pull = self.settings.simulator_weight * passing
        descend(improving, [task, entrance], [None, pull])

    def _improve_decoder(
        self, victims: Tensor, told: Tensor | None, known: LabelledImages
    ) -> None:
        with torch.no_grad():
            entrance = self.entrance(self._network("simulator")(known.images))
        labels = None if told is None else known.labels
        decoder, judge = self._network("decoder"), self._network("image_judge")
        errors = (decoder(entrance, labels) - known.images).square().flatten(1)
        decoded = decoder(victims, told)
        fake = judge(decoded, told)
        real = judge(known.images, labels)
        (passing,) = torch.autograd.grad(_is(fake, 1), decoded, retain_graph=True)
        descend([self.learners["image_judge"]], [_is(real, 1) + _is(fake, 0)])
        pull = self.settings.decoder_weight * passing
        descend(
            [self.learners["decoder"]], [errors.mean(1).sum(), decoded], [None, pull]
        )

    def _task_loss(self, code: Code, labels: Tensor) -> Tensor:
        output: Code = self.server(code)
        has_tail = "tail" in self.learners
        logits = self._network("tail")(output) if has_tail else output.values
        loss = cross_entropy(logits, labels, reduction="sum")
        if self.settings.wcc:
            compaction = within_class_compaction(code.values, labels)
            loss = loss + len(labels) * self.settings.wcc * compaction
        return loss

    def _network(self, name: str) -> nn.Module:
        return self.learners[name].network


def flip(labels: Tensor, rate: float, classes: int) -> Tensor:
    """Return the labels, each replaced by a random one with probability ``rate``."""
    drawn = torch.randint_like(labels, classes)
    return torch.where(
        torch.rand(labels.shape, device=labels.device) < rate, drawn, labels
    )


def _is(logits: Tensor, truth: int) -> Tensor:
    wanted = torch.full_like(logits, truth)
    return binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
