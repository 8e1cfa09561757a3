"""A small variational autoencoder: what images of this kind look like.

    image ──encoder──► latent (mean, spread) ──decoder──► image

It is trained on the attacker's own images. Near the origin every latent gives an image
of that kind, so a search among latents is a search among plausible images only.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, pixel_shuffle

from lightsplit.attacks.base import Progress
from lightsplit.seeding import scope

BATCH = 64
LEARNING_RATE = 3e-3
DIVERGENCE = 0.1  # its weight; 1 leaves latents too coarse to find an image again
WIDTH = 32
CHUNK = 512


class ImagePrior(nn.Module):
    """An autoencoder for images (C, H, W) of any size.

    Args:
        image: shape of an image.
        latent: values of a latent.
    """

    def __init__(self, image: tuple[int, int, int], latent: int) -> None:
        super().__init__()
        self.image = image
        channels, height, width = image
        self.grid = (-(-height // 4), -(-width // 4))
        values = 2 * WIDTH * self.grid[0] * self.grid[1]
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, WIDTH, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, 2 * WIDTH, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(values, 2 * latent),
        )
        self.widen = nn.Linear(latent, values)
        self.finer = nn.Conv2d(2 * WIDTH, 4 * WIDTH, 3, padding=1)
        self.out = nn.Conv2d(WIDTH, 4 * channels, 3, padding=1)

    def encode(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the logarithm of the variance of each image's latent."""
        mean, spread = self.encoder(images).chunk(2, dim=1)
        return mean, spread.clamp(-10, 10)

    def forward(self, latents: Tensor) -> Tensor:
        """Return the image of every latent, in [0, 1]."""
        maps = torch.relu(self.widen(latents)).view(len(latents), -1, *self.grid)
        maps = torch.relu(pixel_shuffle(self.finer(maps), 2))
        levels: Tensor = pixel_shuffle(self.out(maps), 2)
        return levels[..., : self.image[1], : self.image[2]].sigmoid()

    def latents_of(self, images: Tensor) -> Tensor:
        """Return the mean latent of every image."""
        with torch.no_grad():
            chunks = [self.encode(chunk)[0] for chunk in torch.split(images, CHUNK)]
        return torch.cat(chunks)


def train_prior(
    images: Tensor, *, latent: int, steps: int, seed: int, progress: Progress
) -> ImagePrior:
    """Return a prior of these images, frozen."""
    channels, height, width = images.shape[1:]
    with scope(seed, "image prior"):
        prior = ImagePrior((channels, height, width), latent).to(images.device)
        optimizer = torch.optim.Adam(prior.parameters(), lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for step in range(steps):
            loss = _loss(prior, images[torch.randint(len(images), (BATCH,))])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            progress(step + 1, 2 * steps)
    return prior.eval().requires_grad_(False)


def _loss(prior: ImagePrior, images: Tensor) -> Tensor:
    """Return the error of a batch and the divergence of its latents, for each pixel."""
    mean, spread = prior.encode(images)
    latents = mean + (spread / 2).exp() * torch.randn_like(mean)
    error = binary_cross_entropy(prior(latents), images, reduction="sum")
    divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).sum()
    return (error + DIVERGENCE * divergence) / images.numel()
