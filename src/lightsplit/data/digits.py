"""Handwritten digits, 8 × 8: the dataset that comes with the package.

The images and labels are those of scikit-learn's ``load_digits``, in its order;
files/README.md states their origin.
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lightsplit.data.base import DATASETS, Dataset, Samples
from lightsplit.seeding import numpy_generator

CLASSES = 10
BRIGHTEST = 16  # a pixel counts the ink in 4 x 4 dots


@DATASETS.register("digits")
def digits(data_dir: Path | None = None) -> Dataset:  # noqa: ARG001 (all take it)
    """Return 1,437 training and 360 test images, always the same."""
    with (
        files("lightsplit.data").joinpath("files/digits.npz").open("rb") as file,
        np.load(file) as stored,
    ):
        images, labels = stored["images"], stored["labels"].astype(np.int64)
    pixels = np.rint(images * (255 / BRIGHTEST)).astype(np.uint8)
    samples = Samples(torch.from_numpy(pixels[:, None]), torch.from_numpy(labels))
    test = _every_fifth_of_each_class(labels)
    return Dataset(
        name="digits",
        train=samples.subset(torch.from_numpy(np.flatnonzero(~test))),
        test=samples.subset(torch.from_numpy(np.flatnonzero(test))),
        classes=CLASSES,
    )


def _every_fifth_of_each_class(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask of every fifth sample, after shuffling and sorting by class."""
    order = numpy_generator(0, "digits", "test").permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[::5]] = True
    return mask
