"""Picture files, opened one at a time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from lightsplit.data.forms.base import found_file, normalised
from lightsplit.errors import ConfigError, DataError
from lightsplit.extras import require

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm")
MODES = {1: "L", 3: "RGB"}  # Pillow's names for grey and colour
DEEP = "I;16"  # begins its names for 16 bits a value; converting would clip them at 255
WIDE = ("I", "F")  # its names for 32 bits a value, of which nobody knows what is white
Size = tuple[int, int]  # height, width


class PictureForm(Protocol):
    """What a form says about its pictures."""

    @property
    def size(self) -> Size:
        """Height and width."""
        ...

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour."""
        ...

    @property
    def mean(self) -> float | tuple[float, ...] | None:
        """Subtracted from values in [0, 1]."""
        ...

    @property
    def std(self) -> float | tuple[float, ...] | None:
        """Divides the difference."""
        ...


class Pictures(Dataset[Any]):
    """Picture files; a file is read when its sample is asked for.

    Attributes:
        files: the file of each sample.
    """

    def __init__(self, form: PictureForm, files: list[Path]) -> None:
        self._form = form
        self.files = files
        check_pictures(files)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, row: int) -> Any:
        return read_picture(self.files[row], self._form)


def pictures_in(form: PictureForm, folder: Path) -> Pictures:
    """Return all pictures in a folder, by name."""
    files = picture_files(folder)
    if not files:
        raise DataError(f"{folder}: expected pictures, found none")
    return Pictures(form, files)


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


def read_picture(file: Path, form: PictureForm) -> Tensor:
    """Return a picture (channels, height, width), resized where it differs.

    Values are in [0, 1] before they are normalised: bytes by 255, 16 bits by 65,535.
    """
    with _opened(file) as picture:
        try:
            is_deep = picture.mode.startswith(DEEP)
            values = _deep(picture, form) if is_deep else _bytes(picture, form)
        except OSError as error:
            raise DataError(f"{file}: the picture is damaged: {error}") from error
    return normalised(values, form.mean, form.std)


def read_mask(file: Path, size: Size) -> Tensor:
    """Return a mask's grey values (height, width), resized to the nearest."""
    with _opened(file) as picture:
        try:
            is_deep = picture.mode.startswith(DEEP)
            grey = picture.convert("I" if is_deep else "L")
        except OSError as error:
            raise DataError(f"{file}: the mask is damaged: {error}") from error
        return torch.from_numpy(np.array(_resized(grey, size, "NEAREST")))


def write_mask(file: Path, greys: Tensor) -> None:
    """Write grey values as a PNG file, with 16 bits a value where 8 are too few."""
    library = require("PIL.Image", extra="data", purpose="writing pictures")
    values = greys.numpy()
    narrow = values.astype(np.uint8 if values.max() <= 255 else np.uint16)
    library.fromarray(narrow).save(file)


def check_form(size: Size, channels: int = 1) -> None:
    """Raise ConfigError unless pictures can have this size and these channels."""
    if len(size) != 2 or min(size) < 1:
        raise ConfigError(f"size must be (height, width), got {size}")
    if channels not in MODES:
        raise ConfigError(f"channels must be 1 (grey) or 3 (colour), got {channels}")


def _bytes(picture: Any, form: PictureForm) -> Tensor:
    converted = picture.convert(MODES[form.channels])
    values = np.asarray(_resized(converted, form.size, "BILINEAR"))
    if form.channels == 1:
        values = values[..., None]
    numbers = torch.from_numpy(np.array(values.transpose(2, 0, 1), order="C"))
    return numbers.to(torch.float32) / 255


def _deep(picture: Any, form: PictureForm) -> Tensor:
    grey = picture.convert("I").convert("F")
    values = np.array(_resized(grey, form.size, "BILINEAR"))
    return torch.from_numpy(values)[None].repeat(form.channels, 1, 1) / 65_535


def _resized(picture: Any, size: Size, method: str) -> Any:
    height, width = size
    if picture.size == (width, height):
        return picture
    library = require("PIL.Image", extra="data", purpose="reading pictures")
    return picture.resize((width, height), library.Resampling[method])


def _opened(file: Path) -> Any:
    library = require("PIL.Image", extra="data", purpose="reading pictures")
    found_file(file)
    try:
        picture = library.open(file)
    except OSError as error:
        raise DataError(f"{file}: this is not a picture that can be read") from error
    if picture.mode in WIDE:
        picture.close()
        raise DataError(
            f"{file}: the picture has 32 bits a value; write it with 8 or 16 bits"
        )
    return picture
