"""The network that turns codes into images, for codes and images of any size.

    codes ─► stem ─► residual blocks ─► pixel shuffle ─► conv ─► sigmoid ─► images
             └──────────── at the grid ────────────┘

SSIM is unforgiving where an image is black and flat. The sigmoid lets the background
settle near zero.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle

from lightsplit.attacks.decoder_base import CodeDecoder
from lightsplit.attacks.decoder_loss import decoder_loss, similarity
from lightsplit.attacks.decoder_stems import Grid, Stem, is_map
from lightsplit.attacks.knowledge import Pairs

LAST_MAPS = 12


def build_image_decoder(
    pairs: Pairs, *, width: int, blocks: int, seed: int
) -> "ImageDecoder":
    """Return an untrained decoder for codes and images like those of ``pairs``.

    Its linear estimates and standardisation are fitted to the pairs; its weights are
    drawn from torch's generator.
    """
    code, activation, image = (
        tuple(rows.shape[1:]) for rows in (pairs.codes, pairs.activations, pairs.images)
    )
    grid = Grid.under(image, code if is_map(code, image) else activation)
    stem = Stem(pairs, grid, width=width, seed=seed)
    return ImageDecoder(stem, Trunk(image, grid, width=width, blocks=blocks))


class ImageDecoder(CodeDecoder):
    """A stem that brings codes to a grid, and a trunk from there to images."""

    score_name = "SSIM"

    def __init__(self, stem: Stem, trunk: "Trunk") -> None:
        super().__init__()
        self.stem = stem
        self.trunk = trunk

    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return images (B, C, H, W) in [0, 1]; ``folds`` as the stem takes them."""
        images: Tensor = self.trunk(self.stem(codes, folds))
        return images

    @property
    def folds(self) -> Tensor:
        """The fold of each pair, for ``forward``."""
        return self.stem.folds

    def loss(self, output: Tensor, truth: Tensor) -> Tensor:
        """Return squared error and dissimilarity."""
        return decoder_loss(output, truth)

    def score(self, guesses: Tensor, truth: Tensor) -> float:
        """Return the mean SSIM, with flat windows."""
        return float(similarity(guesses, truth))


class Trunk(nn.Module):
    """Residual blocks at the grid, then one step up to the image."""

    def __init__(
        self, image: tuple[int, ...], grid: Grid, *, width: int, blocks: int
    ) -> None:
        super().__init__()
        self.image = image
        self.scale = grid.scale
        self.blocks = nn.Sequential(*[ResidualBlock(width) for _ in range(blocks)])
        self.up = nn.Conv2d(width, LAST_MAPS * grid.scale**2, 3, padding=1)
        self.out = nn.Conv2d(LAST_MAPS, image[0], 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        """Return images in [0, 1]."""
        features = self.blocks(torch.relu(features))
        pixels = torch.relu(pixel_shuffle(self.up(features), self.scale))
        levels: Tensor = self.out(pixels)[..., : self.image[1], : self.image[2]]
        return levels.sigmoid()


class ResidualBlock(nn.Module):
    """Two convolutions whose result is added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return features of the same shape."""
        return torch.relu(features + self.layers(features))
