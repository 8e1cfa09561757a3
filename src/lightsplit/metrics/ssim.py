"""Structural similarity, after Wang et al., IEEE TIP 2004: window 11, σ 1.5, range 1.

The mean is taken over the places where the whole window lies inside the image, as in
TensorFlow, scikit-image and piq (and so by the authors of the published attacks).
torchmetrics computes the map, but would also count windows over a mirrored border.

Images with a side under 11 get the largest odd window that fits, and a σ smaller in
proportion: 7 and 0.95 for digits of 8 x 8. A window of one pixel sees brightness only.
"""

from torch import Tensor

from lightsplit.metrics.base import checked_pair, scored_as

WINDOW = 11
SIGMA = 1.5


@scored_as("ssim", higher_is_better=True, span=(-1.0, 1.0))
def structural_similarity(reconstructions: Tensor, originals: Tensor) -> Tensor:
    """Return the structural similarity of each image to its original."""
    from torchmetrics.functional.image import structural_similarity_index_measure

    reconstructions, originals = checked_pair(reconstructions, originals)
    window = _window(originals)
    _, similarity = structural_similarity_index_measure(
        reconstructions,
        originals,
        sigma=SIGMA * window / WINDOW,  # torchmetrics derives the window from sigma
        data_range=1.0,
        return_full_image=True,
    )
    margin, height, width = window // 2, *originals.shape[2:]
    inside = similarity[..., margin : height - margin, margin : width - margin]
    return inside.flatten(1).mean(1)


def _window(images: Tensor) -> int:
    """Return the largest odd number up to 11 that fits into the shorter side."""
    side = int(min(WINDOW, *images.shape[2:]))
    return side if side % 2 else side - 1
