"""Picture files, opened one at a time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lightsplit.errors import ConfigError, DataError
from lightsplit.extras import require

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm")
MODES = {1: "L", 3: "RGB"}  # Pillow's names for grey and colour
Size = tuple[int, int]  # height, width


def picture_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder, by name; other files are left alone."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and file.is_file()
    )


def check_pictures(files: Iterable[Path]) -> None:
    """Open the head of every file; raise DataError for one that is not a picture."""
    for file in files:
        with _opened(file):
            pass


def picture_size(file: Path) -> Size:
    """Return height and width as the file's head has them."""
    with _opened(file) as picture:
        width, height = picture.size
    return height, width


def read_picture(file: Path, size: Size, channels: int) -> Tensor:
    """Return a picture as bytes (channels, height, width), resized where it differs."""
    with _opened(file) as picture:
        try:
            converted = picture.convert(MODES[channels])
        except OSError as error:
            raise DataError(f"{file}: the picture is damaged: {error}") from error
        values = np.asarray(_resized(converted, size, "BILINEAR"))
    if channels == 1:
        values = values[..., None]
    return torch.from_numpy(np.array(values.transpose(2, 0, 1), order="C"))


def read_mask(file: Path, size: Size) -> Tensor:
    """Return a mask's grey values as bytes (height, width), resized to the nearest."""
    with _opened(file) as picture:
        try:
            grey = picture.convert("L")
        except OSError as error:
            raise DataError(f"{file}: the mask is damaged: {error}") from error
        return torch.from_numpy(np.array(_resized(grey, size, "NEAREST")))


def check_form(size: Size, channels: int = 1) -> None:
    """Raise ConfigError unless pictures can have this size and these channels."""
    if len(size) != 2 or min(size) < 1:
        raise ConfigError(f"size must be (height, width), got {size}")
    if channels not in MODES:
        raise ConfigError(f"channels must be 1 (grey) or 3 (colour), got {channels}")


def _resized(picture: Any, size: Size, method: str) -> Any:
    height, width = size
    if picture.size == (width, height):
        return picture
    library = require("PIL.Image", extra="data", purpose="reading pictures")
    return picture.resize((width, height), library.Resampling[method])


def _opened(file: Path) -> Any:
    library = require("PIL.Image", extra="data", purpose="reading pictures")
    try:
        return library.open(file)
    except OSError as error:
        raise DataError(f"{file}: this is not a picture that can be read") from error
