"""Feature-space hijacking (Pasquini et al. 2021): a server that trains no task.

    public images ──pilot──► codes ──decoder──► images     the server's own autoencoder
    private images ──client's head──► codes ──┐
                                    critic ◄──┴── tells the two kinds of codes apart

Instead of the task's gradient the client gets the critic's. Its head learns to make
codes like the pilot's, which the server's decoder can read. A fixed projection at the
cut lies between head and critic and does not prevent this.

The pilot is convolutional and ends in the client's own encoder, whose random draws the
server knows, so its codes are those that a head could make. Decoder and critic are
fully connected (the published ones are convolutional), because a code has no spatial
layout. The rates suit hundreds of steps on small images; the published 1e-5 needs
thousands.
"""

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from lightsplit.codecs import Code, Codec
from lightsplit.errors import ConfigError, ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reply,
    Request,
)
from lightsplit.seeding import numpy_generator, scope

HIDDEN = 512  # width of decoder and critic
WIDTH = 32  # channels of the pilot
PENALTY = 10.0
LEARNING_RATE = 1e-3  # of pilot and decoder
CRITIC_RATE = 3e-3
CRITIC_STEPS = 3  # per step of the client


class FeatureSpaceHijacker:
    """A server that replies with its own gradients; ``handle`` replaces the server's.

    Args:
        public: images (M, C, H, W) in [0, 1], of the same kind as the client's.
        codec: the codec at the cut; an encoder with weights is copied and trained.
        forward: makes the output for a code, as an honest server would.
        seed: seed of the attacker's weights and draws.
    """

    def __init__(
        self,
        public: Tensor,
        codec: Codec,
        *,
        forward: Callable[[Code], Code],
        seed: int = 0,
    ) -> None:
        if codec.layout(1).side:
            raise ConfigError(
                f"FSHA needs a codec without side information, got {codec.name!r}"
            )
        pixels = public[0].numel()
        with scope(seed, "fsha"):
            self.pilot = _Pilot(public.shape[1:], codec)
            self.decoder = nn.Sequential(_mlp(codec.code_size, pixels), nn.Sigmoid())
            self.critic = _mlp(codec.code_size, 1)
        coder = [*self.pilot.parameters(), *self.decoder.parameters()]
        self._coder = torch.optim.Adam(coder, lr=LEARNING_RATE)
        self._judge = torch.optim.Adam(
            self.critic.parameters(), lr=CRITIC_RATE, betas=(0.5, 0.9)
        )
        self._public = public
        self._codec = codec
        self._forward = forward
        self._seed = seed
        self._pending: CodeGradient | None = None

    def handle(self, request: Request) -> Reply:
        """Return a reply that looks like an honest server's."""
        if isinstance(request, OutputGradient):
            return self._hijack(request)
        if not isinstance(request, CodeMessage):
            raise ProtocolError(f"a hijacker needs codes, got a {request.kind}")
        if request.is_training:
            self._pending = self._train(request)
            if request.labels is not None:
                return self._pending
        with torch.no_grad():
            output = self._forward(self._codec.unpack(request.code))
        return OutputMessage(request.client, request.step, output)

    def reconstruct(self, codes: Tensor) -> Tensor:
        """Return the decoder's images (N, C, H, W) for codes (N, …)."""
        with torch.no_grad():
            images: Tensor = self.decoder(codes.flatten(1))
        return images.view(-1, *self._public.shape[1:])

    @property
    def mean_image(self) -> Tensor:
        """The mean of the public images (C, H, W), a guess without any attack."""
        return self._public.mean(0)

    def _hijack(self, request: OutputGradient) -> CodeGradient:
        pending, self._pending = self._pending, None
        if pending is None or (pending.client, pending.step) != (
            request.client,
            request.step,
        ):
            raise ProtocolError(
                f"step {request.step} of client {request.client} has sent no code"
            )
        return pending

    def _train(self, request: CodeMessage) -> CodeGradient:
        """Learn from a batch of codes and return the critic's gradient at them."""
        values = self._codec.unpack(request.code).values
        images = self._public_images(request, len(values))
        self._train_coder(images)
        public = self.pilot(images).detach()
        with scope(self._seed, "fsha", request.client, request.step):
            for _ in range(CRITIC_STEPS):
                self._train_critic(public, values.flatten(1))
        leaf = values.detach().requires_grad_()
        loss = self.critic(leaf.flatten(1)).mean()
        (gradient,) = torch.autograd.grad(loss, leaf)
        told = None if request.labels is None else 0.0
        return CodeGradient(request.client, request.step, gradient, told)

    def _public_images(self, request: CodeMessage, count: int) -> Tensor:
        names = (request.client, request.step)
        rows = numpy_generator(self._seed, "fsha", *names).integers(
            len(self._public), size=count
        )
        return self._public[torch.from_numpy(rows)]

    def _train_coder(self, images: Tensor) -> None:
        guesses = self.decoder(self.pilot(images))
        _descend(self._coder, mse_loss(guesses, images.flatten(1)))

    def _train_critic(self, public: Tensor, private: Tensor) -> None:
        share = torch.rand(len(public), 1)
        between = (share * public + (1 - share) * private).requires_grad_()
        (slope,) = torch.autograd.grad(
            self.critic(between).sum(), between, create_graph=True
        )
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        gap = self.critic(public).mean() - self.critic(private).mean()
        _descend(self._judge, gap + PENALTY * penalty)


class _Pilot(nn.Module):
    """Maps images to the codes that the client shall learn to make."""

    def __init__(self, image_shape: torch.Size, codec: Codec) -> None:
        super().__init__()
        channels, height, width = image_shape
        layers = [nn.Conv2d(channels, WIDTH, 3, padding=1), nn.LeakyReLU(0.2)]
        if len(codec.shape) == 3:
            layers += [
                nn.AdaptiveAvgPool2d(codec.shape[1:]),
                nn.Conv2d(WIDTH, codec.shape[0], 3, padding=1),
            ]
        else:
            values = WIDTH * height * width
            layers += [nn.Flatten(), nn.Linear(values, math.prod(codec.shape))]
        self.layers = nn.Sequential(*layers)
        self.encoder = copy.deepcopy(codec.encoder)
        self.shape = codec.shape

    def forward(self, images: Tensor) -> Tensor:
        activation = self.layers(images).view(-1, *self.shape)
        values: Tensor = self.encoder(activation).values
        return values.flatten(1)


def _mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.LeakyReLU(0.2), nn.Linear(HIDDEN, outputs)
    )


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
