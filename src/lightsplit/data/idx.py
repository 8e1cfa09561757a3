"""MNIST and Fashion-MNIST in their published IDX format, compressed or not.

magic (00 00 08 ndim) · ndim sizes · bytes          all integers big-endian, 4 bytes
"""

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lightsplit.data.base import DATASETS, Dataset, Samples, checked_samples
from lightsplit.data.folder import data_folder, fetch
from lightsplit.errors import DataError

CLASSES = 10
SIDE = 28
UNSIGNED_BYTES = 0x0800

TRAIN = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
TEST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")

MNIST_MD5 = {
    TRAIN[0]: "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    TRAIN[1]: "d53e105ee54ea40749a09fcbcd1e9432",
    TEST[0]: "9fb629c4189551a2d022fa330f9573f3",
    TEST[1]: "ec29112dd5afa0611ce80d1b7f02629c",
}
FASHION_MNIST_MD5 = {
    TRAIN[0]: "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    TRAIN[1]: "25c81989df183df01b3e8a0aad5dffbe",
    TEST[0]: "bef4ecab320f06d8554ea6380940ec79",
    TEST[1]: "bb300cfdad3c16e7a12a480ee83cd310",
}


@DATASETS.register("mnist")
def mnist(data_dir: Path | None = None) -> Dataset:
    """Return MNIST: 60,000 and 10,000 handwritten digits, 28 × 28 × 1."""
    return _read(data_folder(data_dir) / "mnist", MNIST_MD5)


@DATASETS.register("fashion-mnist")
def fashion_mnist(data_dir: Path | None = None) -> Dataset:
    """Return Fashion-MNIST: 60,000 and 10,000 pieces of clothing, 28 × 28 × 1."""
    return _read(data_folder(data_dir) / "fashion-mnist", FASHION_MNIST_MD5)


def read_idx(path: Path, dimensions: int) -> np.ndarray[Any, Any]:
    """Return the bytes of an IDX file as an array with ``dimensions`` dimensions."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    header = 4 + 4 * dimensions
    magic = int.from_bytes(raw[:4], "big")
    if len(raw) < header or magic != UNSIGNED_BYTES + dimensions:
        raise DataError(
            f"{path}: expected an IDX file with magic {UNSIGNED_BYTES + dimensions}, "
            f"got {len(raw)} bytes with magic {magic}"
        )
    sizes = [int(size) for size in np.frombuffer(raw, ">u4", dimensions, offset=4)]
    if len(raw) != header + math.prod(sizes):
        raise DataError(
            f"{path}: expected {header + math.prod(sizes)} bytes for {sizes}, "
            f"got {len(raw)}"
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(sizes)


def _read(folder: Path, md5: dict[str, str]) -> Dataset:
    absent = {name: md5[name] for name in md5 if not _path(folder, name).exists()}
    fetch(folder, folder.name, absent)
    return Dataset(
        folder.name, _samples(folder, TRAIN), _samples(folder, TEST), CLASSES
    )


def _samples(folder: Path, names: tuple[str, str]) -> Samples:
    images_path, labels_path = (_path(folder, name) for name in names)
    images = read_idx(images_path, dimensions=3)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(
            f"{images_path}: expected images of {SIDE} x {SIDE}, "
            f"got {images.shape[1]} x {images.shape[2]}"
        )
    labels = read_idx(labels_path, dimensions=1)
    return checked_samples(images[:, None], labels, classes=CLASSES, path=labels_path)


def _path(folder: Path, name: str) -> Path:
    packed = folder / name
    return packed if packed.exists() else packed.with_suffix("")
