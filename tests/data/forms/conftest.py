"""Folders as owners have them."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def picture():
    """Return what writes a picture of random bytes and returns its array."""

    def write(file, shape=(8, 8), seed=0, values=None):
        file.parent.mkdir(parents=True, exist_ok=True)
        draw = np.random.default_rng(seed)
        array = draw.integers(0, 256, shape, dtype=np.uint8)
        if values is not None:
            array = draw.choice(np.array(values, dtype=np.uint8), shape)
        Image.fromarray(array).save(file)
        return array

    return write
