"""Learned descent: a network that sees in which direction the code's error falls.

    x₀ ─► slope of ‖client(x) − z̃‖² at x₀ ─┬─► small network ─► x₁ ─► … ─► x₃
       └───────────────────────────────────┘

Plain descent stops wherever the code fits, and many images fit. This network learns
from known images which way along the slope leads to the true image, as learned
iterative schemes for inverse problems do (Adler and Öktem, 2017). The slope is an
input: nothing is differentiated twice.

An attacker who has the head can encode any image. So the network learns from shifted or
mirrored known images, which the decoder has not seen: on its own training images the
decoder would look too good.
"""

import torch
from torch import Tensor, nn

from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_loss import decoder_loss
from lightsplit.attacks.decoder_training import decode
from lightsplit.attacks.image_descent import code_error
from lightsplit.attacks.knowledge import ClientCopy
from lightsplit.seeding import scope

ROUNDS = 3
WIDTH = 32
BATCH = 32
LEARNING_RATE = 2e-3
SHIFTS_OF = 14  # an image is shifted by up to a fourteenth of its size


class LearnedDescent(nn.Module):
    """Some rounds of slope and correction, each with weights of its own."""

    def __init__(self, client: ClientCopy, channels: int) -> None:
        super().__init__()
        self._client = [client]  # in a list, so that it is not trained
        self.rounds = nn.ModuleList(_correction(channels) for _ in range(ROUNDS))

    def forward(self, codes: Tensor, start: Tensor) -> Tensor:
        """Return the images that the descent reaches from ``start``, in [0, 1]."""
        return self.stages(codes, start)[-1]

    def stages(self, codes: Tensor, start: Tensor) -> list[Tensor]:
        """Return the images after each round."""
        images, found = start, []
        for correct in self.rounds:
            slope = self._slope(codes, images.detach())
            images = images + correct(torch.cat([images, slope], dim=1))
            found.append(images)
        return [images.clamp(0, 1) for images in found]

    def _slope(self, codes: Tensor, images: Tensor) -> Tensor:
        """Return the slope of the code's error, each image's scaled to size 1."""
        with torch.enable_grad():
            images = images.requires_grad_()
            error = code_error(self._client[0](images), codes).sum()
            (slope,) = torch.autograd.grad(error, [images])
        size = slope.flatten(1).square().mean(dim=1).sqrt().clamp_min(1e-12)
        return slope / size.view(-1, 1, 1, 1)


def train_descent(
    client: ClientCopy,
    decoder: CodeDecoder,
    images: Tensor,
    *,
    steps: int,
    seed: int,
) -> LearnedDescent:
    """Return a descent that starts at the decoder's images, trained on known ones."""
    with scope(seed, "learned descent"):
        descent = LearnedDescent(client, images.shape[1]).to(images.device)
        optimizer = torch.optim.Adam(descent.parameters(), lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            truth = moved(images[torch.randint(len(images), (BATCH,))])
            with torch.no_grad():
                codes = client(truth)
            found = descent.stages(codes, decode(decoder, codes))
            loss = torch.stack([decoder_loss(each, truth) for each in found]).sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return descent.eval()


def moved(images: Tensor) -> Tensor:
    """Return images shifted by a few pixels, and half of them mirrored."""
    most = max(1, images.shape[-1] // SHIFTS_OF)
    down, along = torch.randint(-most, most + 1, (2,)).tolist()
    shifted = images.roll((down, along), dims=(-2, -1))
    is_mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(is_mirrored, shifted.flip(-1), shifted)


def _correction(channels: int) -> nn.Sequential:
    """Return a network from images and slopes to corrections, at first zero."""
    last = nn.Conv2d(WIDTH, channels, 3, padding=1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias) if last.bias is not None else None
    return nn.Sequential(
        nn.Conv2d(2 * channels, WIDTH, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
        nn.ReLU(),
        last,
    )
