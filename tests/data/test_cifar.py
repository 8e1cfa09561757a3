import io
import tarfile

import numpy as np
import pytest

from lightsplit.data import DATASETS
from lightsplit.data.cifar import CIFAR10, CIFAR100, unpack
from lightsplit.errors import DataError

LAYOUTS = {"cifar10": CIFAR10, "cifar100": CIFAR100}


def records(layout, count=4, first_label=0):
    """Return records whose last label byte counts up and whose planes differ."""
    labels = np.zeros((count, layout.label_bytes), np.uint8)
    labels[:, -1] = first_label + np.arange(count)
    planes = np.repeat(np.array([10, 20, 30], np.uint8), 1024)
    return np.hstack([labels, np.tile(planes, (count, 1))]).tobytes()


def names(layout):
    return [*layout.train, *layout.test]


def write(folder, layout):
    for name in names(layout):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(records(layout))


def write_archive(folder, layout, members):
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / layout.archive, "w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_binary_records_are_read_plane_by_plane(tmp_path, name):
    layout = LAYOUTS[name]
    write(tmp_path / name, layout)
    dataset = DATASETS.create(name, data_dir=tmp_path)
    assert (dataset.classes, dataset.train.shape) == (layout.classes, (3, 32, 32))
    assert len(dataset.train) == 4 * len(layout.train)
    assert dataset.train.images[0].flatten(1).unique(dim=1).T.tolist() == [[10, 20, 30]]
    assert dataset.test.labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_archive_in_the_folder_is_unpacked_without_leftovers(tmp_path, name):
    layout = LAYOUTS[name]
    members = {member: records(layout) for member in names(layout)}
    write_archive(tmp_path / name, layout, {**members, "../outside": b"no"})
    assert len(DATASETS.create(name, data_dir=tmp_path).test) == 4
    written = {
        str(path.relative_to(tmp_path / name))
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert written == {layout.archive, *names(layout)}


def test_a_file_that_is_there_is_not_replaced_from_the_archive(tmp_path):
    folder = tmp_path / "cifar100"
    write(folder, CIFAR100)
    (folder / CIFAR100.test[0]).unlink()
    other = records(CIFAR100, first_label=50)
    write_archive(folder, CIFAR100, dict.fromkeys(names(CIFAR100), other))
    dataset = DATASETS.create("cifar100", data_dir=tmp_path)
    assert dataset.train.labels.tolist() == [0, 1, 2, 3]
    assert dataset.test.labels.tolist() == [50, 51, 52, 53]


def test_a_truncated_archive_leaves_no_half_written_file(tmp_path):
    random = np.random.default_rng(0).bytes(200_000)
    write_archive(tmp_path, CIFAR100, dict.fromkeys(names(CIFAR100), random))
    archive = tmp_path / CIFAR100.archive
    archive.write_bytes(archive.read_bytes()[:100_000])
    with pytest.raises(DataError, match=f"{CIFAR100.archive}: cannot be unpacked"):
        unpack(archive, tmp_path, names(CIFAR100))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


def test_an_archive_without_an_expected_member_is_refused(tmp_path):
    write_archive(tmp_path / "cifar100", CIFAR100, {CIFAR100.train[0]: b"x"})
    with pytest.raises(DataError, match=f"expected {CIFAR100.test[0]} in it"):
        DATASETS.create("cifar100", data_dir=tmp_path)


def test_a_link_in_the_place_of_a_member_is_not_followed(tmp_path):
    tmp_path.joinpath("secret").write_bytes(b"secret")
    with tarfile.open(tmp_path / CIFAR100.archive, "w:gz") as tar:
        member = tarfile.TarInfo(CIFAR100.test[0])
        member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        tar.addfile(member)
    with pytest.raises(DataError, match="in it"):
        unpack(tmp_path / CIFAR100.archive, tmp_path, CIFAR100.test)
    assert not (tmp_path / CIFAR100.test[0]).exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (records(CIFAR10)[:-1], "records of 3073 bytes, got 12291 bytes"),
        (b"", "records of 3073 bytes, got 0 bytes"),
        (records(CIFAR10, first_label=7), "labels from 0 to 9, got 7 to 10"),
    ],
)
def test_a_damaged_batch_is_refused_by_name(tmp_path, content, reason):
    write(tmp_path / "cifar10", CIFAR10)
    (tmp_path / "cifar10" / CIFAR10.train[2]).write_bytes(content)
    with pytest.raises(DataError, match=rf"data_batch_3\.bin: expected {reason}"):
        DATASETS.create("cifar10", data_dir=tmp_path)


def test_a_folder_in_the_place_of_a_file_is_refused_by_name(tmp_path):
    write(tmp_path / "cifar10", CIFAR10)
    path = tmp_path / "cifar10" / CIFAR10.test[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"test_batch\.bin: cannot be read"):
        DATASETS.create("cifar10", data_dir=tmp_path)
