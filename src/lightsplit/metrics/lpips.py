"""Learned perceptual similarity: LPIPS 0.1 with AlexNet, after Zhang et al., CVPR 2018.

    image ──► five maps of features ──each place to length 1──► squared differences
          ──weighted sum over channels, mean over places──► sum over the five maps

0 for equal images; lower is more alike. The forward pass is written out here, because
the released code takes AlexNet from torchvision, which is tied to one build of torch.

Images that differ from the photographs on which the weights were trained:

* One channel is copied to three.
* A side under 64 pixels is stretched to 64, bilinearly, each side separately. AlexNet
  halves an image four times: at 32 x 32 its last maps have a single place, and smaller
  images would not pass. 64 is the size on which the published heads were fitted.

Values of small images are therefore comparable with each other, but not with those of
other programs unless they stretch as well. No gradient flows.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, max_pool2d

from lightsplit.errors import ConfigError
from lightsplit.metrics.base import checked_pair, scored_as
from lightsplit.metrics.lpips_weights import Weights, load_weights

SMALLEST_SIDE = 64
CHUNK = 64  # images that pass through AlexNet at a time

# Mean and deviation of the channels, for values in [-1, 1]: LPIPS's own constants.
SHIFT = (-0.030, -0.088, -0.188)
SCALE = (0.458, 0.448, 0.450)

# Stride, padding, and whether a pooling comes first, of AlexNet's five convolutions.
LAYERS = ((4, 2, False), (1, 2, True), (1, 1, True), (1, 1, False), (1, 1, False))
TINY = 1e-10  # keeps a place without any feature at 0


@scored_as("lpips", higher_is_better=False, span=(0.0, torch.inf), needs_weights=True)
def learned_perceptual_similarity(
    reconstructions: Tensor, originals: Tensor, *, weights: Path
) -> Tensor:
    """Return LPIPS of each image to its original.

    Args:
        reconstructions: (N, C, H, W) with one or three channels.
        originals: the same shape.
        weights: the folder of the weights; missing files are downloaded into it.
    """
    reconstructions, originals = checked_pair(reconstructions, originals)
    if originals.shape[1] not in (1, 3):
        raise ConfigError(
            "LPIPS expects images with one or three channels, "
            f"got {originals.shape[1]}: {tuple(originals.shape)}"
        )
    network = load_weights(weights, originals.device)
    chunks = zip(
        *(torch.split(x, CHUNK) for x in (reconstructions, originals)), strict=True
    )
    with torch.no_grad():
        values = [_distances(network, *map(_prepared, pair)) for pair in chunks]
    return torch.cat(values).to(originals.dtype)


def stretched(images: Tensor) -> Tensor:
    """Return the images with each side at least 64 pixels long."""
    size = [max(side, SMALLEST_SIDE) for side in images.shape[2:]]
    return interpolate(images, size, mode="bilinear", align_corners=False)


def _prepared(images: Tensor) -> Tensor:
    """Return the images as AlexNet takes them: coloured, scaled and large enough."""
    coloured = images.float().expand(-1, 3, -1, -1)
    shift, scale = (coloured.new_tensor(c).view(3, 1, 1) for c in (SHIFT, SCALE))
    return stretched((coloured * 2 - 1 - shift) / scale)


def _distances(network: Weights, reconstructions: Tensor, originals: Tensor) -> Tensor:
    maps = zip(
        _features(network, reconstructions),
        _features(network, originals),
        network.heads,
        strict=True,
    )
    per_map = [
        conv2d((guess - truth).square(), head).mean((1, 2, 3))
        for guess, truth, head in maps
    ]
    return torch.stack(per_map).sum(0)


def _features(network: Weights, images: Tensor) -> Iterator[Tensor]:
    """Yield the maps after each of the five convolutions, each place normalised."""
    maps = images
    for (kernel, bias), (stride, padding, pools) in zip(
        network.convolutions, LAYERS, strict=True
    ):
        maps = max_pool2d(maps, kernel_size=3, stride=2) if pools else maps
        maps = conv2d(maps, kernel, bias, stride=stride, padding=padding).relu()
        yield maps / (maps.norm(dim=1, keepdim=True) + TINY)
