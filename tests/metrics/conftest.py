"""Where the weights of LPIPS may lie, and images to score."""

import os
from pathlib import Path

import pytest

from lightsplit.data import DATASETS


@pytest.fixture(scope="session")
def weights():
    """Return the folder of LPIPS's weights, or skip."""
    named = os.environ.get("LIGHTSPLIT_DATA") or Path.home() / "lightsplit-data"
    folder = Path(named) / "weights"
    if not (folder / "alexnet-features.safetensors").exists():
        pytest.skip(f"no weights in {folder}")
    return folder


@pytest.fixture(scope="session")
def digits():
    """Return 64 handwritten digits of 8 x 8."""
    return DATASETS.create("digits").train.images[:64].float() / 255
