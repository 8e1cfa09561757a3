"""From a code of any shape to feature maps on a grid under the image.

             ┌─ the code itself, if it is a map ──────────────────┐
    code ────┼─ linear MMSE of the activation, if that is a map ──┤
    (any     ├─ linear MMSE of the image, folded ─────────────────┼─► (width, *grid)
    shape)   └─ two trained dense layers ─────────────────────────┘

Every code is read in all the ways that it allows, so that no shape has a stronger
reader than another: a map also gets the dense layers, and a flat code gets its places
back from the linear estimates. These are the best linear lift, better than R itself,
and need no knowledge of the codec. A map of more than 4,096 values goes without the
linear estimate of the image, which would take too long. The grid has half the image's
height and width, or the full size if a code is larger than half: a decoder then does
most of its work on few positions.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad, pixel_shuffle, pixel_unshuffle

from lightsplit.attacks.knowledge import Pairs
from lightsplit.attacks.linear import CrossFit, cross_fit

DENSE_FEATURES = 256
DENSE_MAPS = 8
MOST_VALUES = 4096  # of a map, for a linear estimate of the image
COARSEST = 4  # a map with fewer than a quarter of the image's rows is read as flat


class Grid(NamedTuple):
    """The grid that a decoder works on: rows, columns, and pixels per cell and side."""

    height: int
    width: int
    scale: int

    @classmethod
    def under(cls, image: tuple[int, ...], maps: tuple[int, ...]) -> "Grid":
        """Return the grid for images (C, H, W) from codes or activations ``maps``."""
        halved = [-(-side // 2) for side in image[1:]]
        if is_map(maps, image) and (maps[1] > halved[0] or maps[2] > halved[1]):
            return cls(image[1], image[2], 1)
        return cls(halved[0], halved[1], 2)


def is_map(shape: tuple[int, ...], image: tuple[int, ...]) -> bool:
    """Return whether ``shape`` is that of feature maps fine enough to show places."""
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


class Stem(nn.Module):
    """Codes of any shape to ``width`` maps at the grid.

    Args:
        pairs: the linear estimates and the standardisation are fitted to them.
        grid: of the maps that it returns.
        width: the number of these maps.
        seed: of the folds of the linear estimates.

    Attributes:
        folds: the fold of each pair, for ``forward``.
    """

    def __init__(self, pairs: Pairs, grid: Grid, *, width: int, seed: int) -> None:
        super().__init__()
        code, activation, image = (
            tuple(rows.shape[1:])
            for rows in (pairs.codes, pairs.activations, pairs.images)
        )
        self.grid = grid
        flat = pairs.codes.flatten(1)
        is_placed = is_map(code, image)
        self.folds = torch.zeros(len(flat), dtype=torch.int64)
        self.image: CrossFitted | None = None
        if not is_placed or flat.shape[1] <= MOST_VALUES:
            estimate = cross_fit(flat, pairs.images, seed=seed)
            self.folds = estimate.folds
            self.image = CrossFitted(estimate)
        self.standardise = Standardise(flat)
        self.dense = nn.Sequential(
            nn.Linear(flat.shape[1], DENSE_FEATURES),
            nn.ReLU(),
            nn.Linear(DENSE_FEATURES, DENSE_MAPS * grid.height * grid.width),
        )
        folded = image[0] * grid.scale**2 if self.image else 0
        self.mix = nn.Conv2d(DENSE_MAPS + folded, width, 3, padding=1)
        self.own_places = MapStem(pairs.codes, grid, width) if is_placed else None
        self.lift: CrossFitted | None = None
        self.places: MapStem | None = None
        if code != activation and is_map(activation, image):
            fit = cross_fit(flat, pairs.activations, seed=seed)
            self.folds = fit.folds  # the same: they depend on the seed alone
            self.lift = CrossFitted(fit)
            self.places = MapStem(self.lift(flat), grid, width)

    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return (B, width, *grid); ``folds`` are those of pairs it was fitted to."""
        flat = codes.flatten(1)
        height, width, scale = self.grid
        dense = self.dense(self.standardise(flat)).view(len(codes), -1, height, width)
        if self.image is not None:
            image = _padded(self.image(flat, folds), height * scale, width * scale)
            dense = torch.cat([dense, pixel_unshuffle(image, scale)], dim=1)
        maps: Tensor = self.mix(_channels_last(dense))
        if self.own_places is not None:
            maps = maps + self.own_places(codes)
        if self.lift is not None and self.places is not None:
            maps = maps + self.places(self.lift(flat, folds))
        return maps


class CrossFitted(nn.Module):
    """Linear estimates in float32 that are not trained further.

    A row of the pairs is estimated without the pairs of its own fold, and any other row
    by the mean of all estimates.
    """

    weights: Tensor
    biases: Tensor

    def __init__(self, fit: CrossFit) -> None:
        super().__init__()
        self.shape = fit.estimates[0].target_shape
        weights = torch.stack([each.weight.float() for each in fit.estimates])
        biases = [e.target_mean - e.code_mean @ e.weight for e in fit.estimates]
        self.register_buffer("weights", weights)
        self.register_buffer("biases", torch.stack(biases).float())

    def forward(self, codes: Tensor, folds: Tensor | None = None) -> Tensor:
        """Return the estimate of every row of (B, k)."""
        if folds is None:
            flat = torch.addmm(self.biases.mean(dim=0), codes, self.weights.mean(dim=0))
            return flat.view(len(codes), *self.shape)
        flat = codes.new_empty(len(codes), self.weights.shape[2])
        for fold in range(len(self.weights)):
            rows = folds == fold
            flat[rows] = torch.addmm(self.biases[fold], codes[rows], self.weights[fold])
        return flat.view(len(codes), *self.shape)


def fitted(maps: Tensor, grid: Grid) -> Tensor:
    """Return maps at the grid: smaller maps are padded with zeros, larger ones shrunk.

    Smaller maps are not stretched, because unpadded convolutions cut the border off an
    image and leave the rest in its place.
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
