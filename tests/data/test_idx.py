import gzip

import numpy as np
import pytest

from lightsplit.data import DATASETS
from lightsplit.errors import DataError

PARTS = {"train": 7, "t10k": 3}


def idx(array):
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def pictures(count, side=28):
    values = np.random.default_rng(count).integers(0, 256, (count, side, side))
    return values.astype(np.uint8)


def write(folder, *, packed=True):
    folder.mkdir(parents=True)
    for part, count in PARTS.items():
        contents = {
            f"{part}-images-idx3-ubyte": pictures(count),
            f"{part}-labels-idx1-ubyte": np.arange(count, dtype=np.uint8),
        }
        for name, array in contents.items():
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read_packed_and_unpacked(tmp_path, name, packed):
    write(tmp_path / name, packed=packed)
    dataset = DATASETS.create(name, data_dir=tmp_path)
    assert (dataset.name, dataset.classes) == (name, 10)
    assert dataset.train.shape == (1, 28, 28)
    assert np.array_equal(dataset.train.images[:, 0].numpy(), pictures(7))
    assert dataset.test.labels.tolist() == [0, 1, 2]


def spoil_magic(raw):
    return b"\x00\x00\x09" + raw[3:]


def cut_short(raw):
    return raw[:-5]


def make_longer(raw):
    return raw + b"\x00"


def nearly_empty(raw):
    return raw[:2]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (spoil_magic, "expected an IDX file with magic 2051, got .* magic 2307"),
        (cut_short, r"expected 5504 bytes for \[7, 28, 28\], got 5499"),
        (make_longer, "expected 5504 bytes .* got 5505"),
        (nearly_empty, "expected an IDX file .* got 2 bytes with magic 0"),
    ],
)
def test_a_damaged_idx_file_is_refused_by_name(tmp_path, damage, reason):
    write(tmp_path / "mnist", packed=False)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=f"train-images-idx3-ubyte: {reason}"):
        DATASETS.create("mnist", data_dir=tmp_path)


@pytest.mark.parametrize("keep", [4, 200])
def test_a_truncated_gzip_file_is_refused_by_name(tmp_path, keep):
    write(tmp_path / "mnist")
    path = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz: cannot be read"):
        DATASETS.create("mnist", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("images-idx3", pictures(7, side=8), "expected images of 28 x 28, got 8 x 8"),
        (
            "labels-idx1",
            np.full(7, 10, np.uint8),
            "expected labels from 0 to 9, got 10",
        ),
        ("labels-idx1", np.zeros(6, np.uint8), "expected .* got 7 images and 6 labels"),
    ],
)
def test_idx_files_of_other_contents_are_refused(tmp_path, name, array, reason):
    write(tmp_path / "mnist", packed=False)
    (tmp_path / "mnist" / f"train-{name}-ubyte").write_bytes(idx(array))
    with pytest.raises(DataError, match=f"train-{name}-ubyte: {reason}"):
        DATASETS.create("mnist", data_dir=tmp_path)


def test_files_without_samples_are_refused(tmp_path):
    write(tmp_path / "mnist", packed=False)
    nothing = {"images-idx3": pictures(0), "labels-idx1": np.zeros(0, np.uint8)}
    for name, array in nothing.items():
        (tmp_path / "mnist" / f"train-{name}-ubyte").write_bytes(idx(array))
    with pytest.raises(DataError, match="at least one sample, got none"):
        DATASETS.create("mnist", data_dir=tmp_path)
