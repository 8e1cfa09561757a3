"""Files that read as CIFAR-10 and hold noise: for timing, where no data is needed."""

from pathlib import Path

import numpy as np

from lightsplit.data.cifar import CIFAR10, PIXELS

IMAGES_PER_FILE = 128


def write_random_cifar(folder: Path) -> None:
    """Write six small files to a data folder."""
    generator = np.random.default_rng(0)
    for name in (*CIFAR10.train, *CIFAR10.test):
        file = folder / CIFAR10.name / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shape = IMAGES_PER_FILE, CIFAR10.label_bytes + PIXELS
        records = generator.integers(256, size=shape, dtype=np.uint8)
        records[:, 0] %= CIFAR10.classes
        records.tofile(file)
