"""CIFAR-10 and CIFAR-100 in their published binary layout.

    CIFAR-10    label · 3072 bytes                   per image
    CIFAR-100   coarse label · fine label · 3072 bytes

The 3072 bytes are 1024 red, 1024 green and 1024 blue, each 32 rows of 32. The labels
of CIFAR-100 are the fine ones. Only files with the expected names are unpacked, and
each file gets its name once it is complete.
"""

import shutil
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lightsplit.data.base import DATASETS, Dataset, Samples, checked_samples
from lightsplit.data.folder import data_folder, fetch, written_whole
from lightsplit.errors import DataError

PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Layout:
    """Where one of the two datasets is published, and how its records begin."""

    name: str
    archive: str
    md5: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int
    classes: int


CIFAR10 = Layout(
    name="cifar10",
    archive="cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    train=tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
    test=("cifar-10-batches-bin/test_batch.bin",),
    label_bytes=1,
    classes=10,
)
CIFAR100 = Layout(
    name="cifar100",
    archive="cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    train=("cifar-100-binary/train.bin",),
    test=("cifar-100-binary/test.bin",),
    label_bytes=2,
    classes=100,
)


@DATASETS.register("cifar10")
def cifar10(data_dir: Path | None = None) -> Dataset:
    """Return CIFAR-10: 50,000 and 10,000 photographs, 32 × 32 × 3."""
    return _read(data_folder(data_dir) / CIFAR10.name, CIFAR10)


@DATASETS.register("cifar100")
def cifar100(data_dir: Path | None = None) -> Dataset:
    """Return CIFAR-100 with its 100 fine labels: 50,000 and 10,000, 32 × 32 × 3."""
    return _read(data_folder(data_dir) / CIFAR100.name, CIFAR100)


def unpack(archive: Path, folder: Path, names: Sequence[str]) -> None:
    """Write the members ``names`` of a tar archive, and no others, below ``folder``."""
    left = set(names)
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                if member.name in left and member.isreg():
                    _write(tar, member, folder / member.name)
                    left.remove(member.name)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: cannot be unpacked: {error}") from error
    if left:
        raise DataError(f"{archive}: expected {', '.join(sorted(left))} in it")


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} is not a file")
    with source, written_whole(path) as target:
        shutil.copyfileobj(source, target)


def _read(folder: Path, layout: Layout) -> Dataset:
    names = (*layout.train, *layout.test)
    absent = [name for name in names if not (folder / name).exists()]
    if absent:
        fetch(folder, layout.name, {layout.archive: layout.md5})
        unpack(folder / layout.archive, folder, absent)
    train = [_samples(folder / name, layout) for name in layout.train]
    test = [_samples(folder / name, layout) for name in layout.test]
    return Dataset(layout.name, _joined(train), _joined(test), layout.classes)


def _samples(path: Path, layout: Layout) -> Samples:
    try:
        raw = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    record = layout.label_bytes + PIXELS
    if not len(raw) or len(raw) % record:
        raise DataError(
            f"{path}: expected records of {record} bytes, got {len(raw)} bytes, "
            f"{len(raw) % record} more than whole records"
        )
    records = raw.reshape(-1, record)
    images = records[:, layout.label_bytes :].reshape(-1, 3, 32, 32)
    labels = records[:, layout.label_bytes - 1]
    return checked_samples(images, labels, classes=layout.classes, path=path)


def _joined(parts: list[Samples]) -> Samples:
    return Samples(
        torch.cat([part.images for part in parts]),
        torch.cat([part.labels for part in parts]),
    )
