"""scikit-learn's handwritten digits, 8 × 8: the one dataset that needs no download."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from lightsplit.data.base import DATASETS, Dataset, Samples
from lightsplit.seeding import numpy_generator

CLASSES = 10
BRIGHTEST = 16  # scikit-learn's images count from 0 to 16


@DATASETS.register("digits")
def digits(data_dir: Path | None = None) -> Dataset:  # noqa: ARG001 (all take it)
    """Return 1,437 training and 360 test images, always the same ones."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.rint(bunch.images * (255 / BRIGHTEST)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    samples = Samples(torch.from_numpy(pixels[:, None]), torch.from_numpy(labels))
    test = _every_fifth_of_each_class(labels)
    return Dataset(
        name="digits",
        train=samples.subset(torch.from_numpy(np.flatnonzero(~test))),
        test=samples.subset(torch.from_numpy(np.flatnonzero(test))),
        classes=CLASSES,
    )


def _every_fifth_of_each_class(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask of every fifth sample, shuffled and then ordered by class."""
    order = numpy_generator(0, "digits", "test").permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[::5]] = True
    return mask
