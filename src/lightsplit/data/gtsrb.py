"""The German traffic signs, cut out and scaled to 32 × 32, in one .npz file.

    published archives ──once──► gtsrb-32.npz ──► Samples
    x_train, x_test (N, 32, 32, 3) uint8 · y_train, y_test (N,) · tracks_train (N,)

A track is about 30 frames of one sign; its number counts within its class. The training
set is the final one (39,209 images). GTSRB-Training_fixed.zip, which torchvision uses,
is the smaller set of the 2011 competition (26,640): it is used if it is already in the
folder, but never downloaded.
"""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lightsplit.data.base import DATASETS, Dataset, Samples, checked_samples
from lightsplit.data.folder import data_folder, fetch, written_whole
from lightsplit.errors import DataError
from lightsplit.extras import require

CLASSES = 43
SIDE = 32
FILE = "gtsrb-32.npz"

TRAINING = "GTSRB_Final_Training_Images.zip"
COMPETITION_TRAINING = "GTSRB-Training_fixed.zip"
TEST = "GTSRB_Final_Test_Images.zip"
TEST_LABELS = "GTSRB_Final_Test_GT.zip"
TEST_FOLDER = "GTSRB/Final_Test/Images"
MD5 = {
    TRAINING: "f33fd80ac59bff73c82d25ab499e03a3",
    COMPETITION_TRAINING: "513f3c79a4c5141765e10e952eaa2478",
    TEST: "c7e4e6327067d32654124b0fe9e82185",
    TEST_LABELS: "fe31e9c9270bbcd7b84b7f21a9d9d9e5",
}

Array = np.ndarray[Any, Any]
DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,  # zipfile: a password, or an unknown method
    zipfile.BadZipFile,
    zlib.error,
)


class Sign(NamedTuple):
    """One row of a published table: a picture, the box of its sign, and the class.

    The right and lower edges of the box are the first pixels outside it: read like
    this, a sign has the same margin on all sides.
    """

    picture: str
    box: tuple[int, int, int, int]
    label: int


@DATASETS.register("gtsrb")
def gtsrb(data_dir: Path | None = None) -> Dataset:
    """Return GTSRB: traffic signs of 43 classes, 32 × 32 × 3."""
    folder = data_folder(data_dir) / "gtsrb"
    path = folder / FILE
    if not path.exists():
        build(folder)
    arrays = _load(path)
    train, test = (_samples(arrays, part, path) for part in ("train", "test"))
    return Dataset("gtsrb", train, test, CLASSES)


def build(folder: Path) -> None:
    """Write gtsrb-32.npz from the published archives; fetch the missing ones."""
    training = _training_archive(folder)
    fetch(folder, "gtsrb", {name: MD5[name] for name in (training, TEST, TEST_LABELS)})
    train_signs = _signs(folder / training)
    test_signs = _signs(folder / TEST_LABELS, pictures_in=TEST_FOLDER)
    arrays: dict[str, Any] = {
        "x_train": _pictures(folder / training, train_signs),
        "y_train": np.array([sign.label for sign in train_signs], np.uint8),
        "tracks_train": np.array([_track(sign) for sign in train_signs], np.int16),
        "x_test": _pictures(folder / TEST, test_signs),
        "y_test": np.array([sign.label for sign in test_signs], np.uint8),
    }
    try:
        with written_whole(folder / FILE) as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise DataError(f"{folder / FILE}: cannot be written: {error}") from error


def _load(path: Path) -> dict[str, Array]:
    wanted = ("x_train", "y_train", "x_test", "y_test")
    try:
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path}: expected an .npz archive, got something else")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in wanted}
    except KeyError as error:
        raise DataError(f"{path}: expected {', '.join(wanted)} in it") from error
    except DAMAGE as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _samples(arrays: dict[str, Array], part: str, path: Path) -> Samples:
    images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if images.dtype != np.uint8 or images.shape[1:] != (SIDE, SIDE, 3):
        raise DataError(
            f"{path}: expected x_{part} as uint8 (N, {SIDE}, {SIDE}, 3), "
            f"got {images.dtype} {images.shape}"
        )
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise DataError(
            f"{path}: expected y_{part} as integers (N,), "
            f"got {labels.dtype} {labels.shape}"
        )
    planes = images.transpose(0, 3, 1, 2)
    return checked_samples(planes, labels, classes=CLASSES, path=path)


def _training_archive(folder: Path) -> str:
    has_competition = (folder / COMPETITION_TRAINING).exists()
    has_final = (folder / TRAINING).exists()
    return COMPETITION_TRAINING if has_competition and not has_final else TRAINING


def _signs(path: Path, pictures_in: str | None = None) -> list[Sign]:
    """Return the rows of all tables GT-*.csv of an archive, sorted by table name.

    The pictures are beside their table, or in the folder ``pictures_in`` if given.
    """
    signs: list[Sign] = []
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                folder, _, table = name.rpartition("/")
                if table.startswith("GT-") and table.endswith(".csv"):
                    text = archive.read(name).decode("ascii")
                    signs += _rows(text, pictures_in or folder)
    except KeyError as error:
        raise DataError(f"{path}: expected a column {error} in {name}") from error
    except DAMAGE as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if not signs:
        raise DataError(f"{path}: expected a table GT-*.csv with signs, got none")
    return signs


def _rows(text: str, folder: str) -> Iterator[Sign]:
    for row in csv.DictReader(io.StringIO(text), delimiter=";", restval=""):
        left, top, right, bottom = (
            int(row[edge]) for edge in ("Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2")
        )
        label = int(row["ClassId"])
        if not 0 <= label < CLASSES:
            raise ValueError(
                f"expected a class below 43 for {row['Filename']}, got {label}"
            )
        picture = f"{folder}/{row['Filename']}"
        yield Sign(picture, (left, top, right, bottom), label)


def _pictures(path: Path, signs: list[Sign]) -> Array:
    images = np.empty((len(signs), SIDE, SIDE, 3), np.uint8)
    try:
        with zipfile.ZipFile(path) as archive:
            for image, sign in zip(images, signs, strict=True):
                image[:] = _cut_out(archive.read(sign.picture), sign)
    except KeyError as error:
        raise DataError(f"{path}: expected {sign.picture} in it") from error
    except DAMAGE as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return images


def _cut_out(picture: bytes, sign: Sign) -> Array:
    pillow: Any = require("PIL.Image", extra="data", purpose="reading gtsrb")
    with pillow.open(io.BytesIO(picture)) as image:
        left, top, right, bottom = sign.box
        if not (0 <= left < right <= image.width and 0 <= top < bottom <= image.height):
            raise ValueError(
                f"{sign.picture} has its sign at {sign.box}, outside {image.size}"
            )
        sized = image.convert("RGB").crop(sign.box)
        return np.asarray(sized.resize((SIDE, SIDE), pillow.Resampling.BILINEAR))


def _track(sign: Sign) -> int:
    """Return the first number of a name such as 00007_00029.ppm."""
    return int(sign.picture.rpartition("/")[2].partition("_")[0])
