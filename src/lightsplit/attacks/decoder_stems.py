"""From a code of any shape to feature maps on a grid under the image.

    map code  (C, h, w) ── standardise ── conv ── pixel shuffle ──┐
                                                                  ├─► (width, *grid)
    flat code (k,) ─┬─ linear MMSE of the activation, if a map ───┤
                    ├─ linear MMSE of the image, folded ──────────┤
                    └─ trained dense layer ───────────────────────┘

The grid has half the image's height and width, or all of it for codes larger than that:
so most of a decoder's work is done on few positions. A flat code gets its places back
by the linear estimates. They are the best linear lift, better than R itself, and need
no knowledge of the codec; what they miss the dense layer may add.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad, pixel_shuffle, pixel_unshuffle

from lightsplit.attacks.linear import LinearEstimate

DENSE_MAPS = 8
COARSEST = 4  # a map with fewer than a quarter of the image's rows is read as flat


class Grid(NamedTuple):
    """Where a decoder works: rows, columns, and pixels of the image for each."""

    height: int
    width: int
    scale: int

    @classmethod
    def under(cls, image: tuple[int, ...], code: tuple[int, ...]) -> "Grid":
        """Return the grid for images (C, H, W) from codes or activations ``code``."""
        halved = [-(-side // 2) for side in image[1:]]
        if is_map(code, image) and (code[1] > halved[0] or code[2] > halved[1]):
            return cls(image[1], image[2], 1)
        return cls(halved[0], halved[1], 2)


def is_map(shape: tuple[int, ...], image: tuple[int, ...]) -> bool:
    """Say whether ``shape`` is that of feature maps which show where things are."""
    if len(shape) != 3:
        return False
    return shape[1] * COARSEST >= image[1] and shape[2] * COARSEST >= image[2]


class Standardise(nn.Module):
    """Brings every value of a row to mean 0 and deviation 1, as in ``rows``."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        # A value that hardly ever moves must not be blown up to the size of the others.
        least = 0.05 * rows.std() + 1e-12
        self.register_buffer("mean", rows.mean(dim=0))
        self.register_buffer("deviation", rows.std(dim=0).maximum(least))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the rows standardised."""
        return (rows - self.mean) / self.deviation


class MapStem(nn.Module):
    """Feature maps (C, h, w) to ``width`` maps at the grid."""

    def __init__(self, maps: Tensor, grid: Grid, width: int) -> None:
        super().__init__()
        channels, height, columns = maps.shape[1:]
        self.grid = grid
        self.factor = max(1, min(grid.height // height, grid.width // columns))
        self.standardise = Standardise(maps)
        self.spread = nn.Conv2d(channels, width * self.factor**2, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        """Return (B, width, *grid)."""
        spread = self.spread(_channels_last(self.standardise(maps)))
        return fitted(pixel_shuffle(spread, self.factor), self.grid)


class FlatStem(nn.Module):
    """Flat codes to ``width`` maps at the grid, by linear estimates and a dense layer.

    Args:
        codes: of the pairs, (M, k).
        image: the linear estimate of the images.
        activation: that of the activations, where these are maps.
        grid: where to.
        width: how many maps.
    """

    def __init__(
        self,
        codes: Tensor,
        image: LinearEstimate,
        activation: LinearEstimate | None,
        *,
        grid: Grid,
        width: int,
    ) -> None:
        super().__init__()
        self.grid = grid
        self.standardise = Standardise(codes)
        self.dense = nn.Linear(codes.shape[1], DENSE_MAPS * grid.height * grid.width)
        self.image = FrozenLinear(image)
        self.lift = FrozenLinear(activation) if activation else None
        self.places = MapStem(activation(codes), grid, width) if activation else None
        folded = image.target_shape[0] * grid.scale**2
        self.mix = nn.Conv2d(DENSE_MAPS + folded, width, 3, padding=1)

    def forward(self, codes: Tensor) -> Tensor:
        """Return (B, width, *grid)."""
        codes = codes.flatten(1)
        height, width, scale = self.grid
        dense = self.dense(self.standardise(codes)).view(len(codes), -1, height, width)
        image = _padded(self.image(codes), height * scale, width * scale)
        folded = torch.cat([dense, pixel_unshuffle(image, scale)], dim=1)
        mixed: Tensor = self.mix(_channels_last(folded))
        if self.lift is None or self.places is None:
            return mixed
        placed: Tensor = self.places(self.lift(codes))
        return mixed + placed


class FrozenLinear(nn.Module):
    """A linear estimate in float32 that is not trained further."""

    weight: Tensor
    bias: Tensor

    def __init__(self, estimate: LinearEstimate) -> None:
        super().__init__()
        bias = estimate.target_mean - estimate.code_mean @ estimate.weight
        self.shape = estimate.target_shape
        self.register_buffer("weight", estimate.weight.float())
        self.register_buffer("bias", bias.float())

    def forward(self, codes: Tensor) -> Tensor:
        """Return the estimate of every row."""
        flat = torch.addmm(self.bias, codes, self.weight)
        return flat.view(len(codes), *self.shape)


def fitted(maps: Tensor, grid: Grid) -> Tensor:
    """Return maps at the grid: zeros around smaller ones, larger ones shrunk.

    Zeros around them, not stretched: unpadded convolutions eat the border of an image
    and leave the rest where it was.
    """
    if maps.shape[-2] > grid.height or maps.shape[-1] > grid.width:
        return interpolate(maps, (grid.height, grid.width), mode="bilinear")
    return _padded(maps, grid.height, grid.width, is_central=True)


def _padded(
    maps: Tensor, height: int, width: int, *, is_central: bool = False
) -> Tensor:
    rows, columns = height - maps.shape[-2], width - maps.shape[-1]
    top, left = (rows // 2, columns // 2) if is_central else (0, 0)
    return pad(maps, (left, columns - left, top, rows - top))


def _channels_last(maps: Tensor) -> Tensor:
    return maps.contiguous(memory_format=torch.channels_last)  # a third faster on a CPU
