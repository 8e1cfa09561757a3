import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from lightsplit.data import DATASETS
from lightsplit.data.gtsrb import (
    COMPETITION_TRAINING,
    FILE,
    TEST,
    TEST_LABELS,
    TRAINING,
    gtsrb,
)
from lightsplit.errors import DataError

HEADER = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"


def arrays(**changes):
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3)).astype(np.uint8)
    labels = np.array([0, 42, 3, 4, 5], np.uint8)
    plain = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}
    return {**plain, **changes}


def write_npz(data_dir, **changes):
    (data_dir / "gtsrb").mkdir()
    np.savez(data_dir / "gtsrb" / FILE, **arrays(**changes))


def ppm(colour):
    """Return a picture of 50 x 40, black but for the box from (10, 5) to (40, 35)."""
    image = Image.new("RGB", (50, 40))
    image.paste(colour, (10, 5, 40, 35))
    buffer = io.BytesIO()
    image.save(buffer, "PPM")
    return buffer.getvalue()


def row(name, label, box="10;5;40;35"):
    return f"{name};50;40;{box};{label}"


def write_zip(path, members):
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def table(*rows):
    return "\r\n".join([HEADER, *rows]) + "\r\n"


def write_archives(data_dir, training=TRAINING, box="10;5;40;35"):
    root = "GTSRB/Final_Training/Images" if training == TRAINING else "GTSRB/Training"
    frames = ["00000_00000.ppm", "00007_00001.ppm"]
    members = {"GTSRB/Readme-Images.txt": "text"}
    for label in (0, 42):
        rows = [row(frame, label, box) for frame in frames]
        members[f"{root}/{label:05d}/GT-{label:05d}.csv"] = table(*rows)
        members |= {
            f"{root}/{label:05d}/{frame}": ppm((label, 100, 200)) for frame in frames
        }
    folder = data_dir / "gtsrb"
    write_zip(folder / training, members)
    test = {f"GTSRB/Final_Test/Images/{i:05d}.ppm": ppm((i, 0, 9)) for i in range(3)}
    unlabelled = {"GTSRB/Final_Test/Images/GT-final_test.test.csv": "Filename\r\n"}
    write_zip(folder / TEST, {**test, **unlabelled})
    rows = [row(f"{i:05d}.ppm", label) for i, label in enumerate([9, 2, 30])]
    write_zip(folder / TEST_LABELS, {"GT-final_test.csv": table(*rows)})


def test_the_npz_file_is_read_as_planes(tmp_path):
    write_npz(tmp_path)
    dataset = gtsrb(tmp_path)
    assert (dataset.classes, dataset.train.shape) == (43, (3, 32, 32))
    expected = arrays()["x_train"].transpose(0, 3, 1, 2)
    assert np.array_equal(dataset.train.images.numpy(), expected)
    assert dataset.test.labels.tolist() == [0, 42, 3, 4, 5]


@pytest.mark.parametrize("training", [TRAINING, COMPETITION_TRAINING])
def test_the_published_archives_are_cut_to_the_signs_once(tmp_path, training):
    write_archives(tmp_path, training)
    dataset = DATASETS.create("gtsrb", data_dir=tmp_path)
    assert dataset.train.labels.tolist() == [0, 0, 42, 42]
    assert dataset.test.labels.tolist() == [9, 2, 30]
    for image, red in zip(dataset.test.images, range(3), strict=True):
        assert image.flatten(1).unique(dim=1).T.tolist() == [[red, 0, 9]]
    for archive in (training, TEST, TEST_LABELS):
        (tmp_path / "gtsrb" / archive).unlink()
    assert len(gtsrb(tmp_path).train) == 4
    assert [path.name for path in (tmp_path / "gtsrb").iterdir()] == [FILE]


def test_the_tracks_are_kept_in_the_file(tmp_path):
    write_archives(tmp_path)
    gtsrb(tmp_path)
    with np.load(tmp_path / "gtsrb" / FILE, allow_pickle=False) as file:
        assert file["tracks_train"].tolist() == [0, 7, 0, 7]


@pytest.mark.parametrize(
    "changes",
    [
        {"x_train": np.zeros((5, 32, 32), np.uint8)},
        {"x_test": np.zeros((5, 32, 32, 3), np.float32)},
        {"y_train": np.zeros(5, np.float32)},
        {"y_test": np.full(5, 43, np.uint8)},
        {"y_train": np.full(5, -1, np.int64)},
        {"y_train": np.zeros(4, np.uint8)},
        {"y_train": np.array([{}] * 5)},
    ],
)
def test_arrays_of_another_kind_are_refused_by_file(tmp_path, changes):
    write_npz(tmp_path, **changes)
    with pytest.raises(DataError, match=r"gtsrb-32\.npz: (expected|cannot be read)"):
        gtsrb(tmp_path)


def test_a_file_without_an_expected_array_is_refused(tmp_path):
    (tmp_path / "gtsrb").mkdir()
    np.savez(tmp_path / "gtsrb" / FILE, x_train=arrays()["x_train"])
    with pytest.raises(DataError, match="expected x_train, y_train, x_test, y_test"):
        gtsrb(tmp_path)


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
def test_a_truncated_npz_file_is_refused_by_name(tmp_path, share):
    write_npz(tmp_path)
    path = tmp_path / "gtsrb" / FILE
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(DataError, match=r"gtsrb-32\.npz: expected an \.npz archive"):
        gtsrb(tmp_path)


def test_a_flipped_byte_of_an_npz_file_is_noticed(tmp_path):
    write_npz(tmp_path)
    path = tmp_path / "gtsrb" / FILE
    raw = bytearray(path.read_bytes())
    raw[5000] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DataError, match="Bad CRC-32"):
        gtsrb(tmp_path)


def without_picture(folder):
    write_zip(folder / TEST, {"GTSRB/Final_Test/Images/00000.ppm": ppm((1, 1, 1))})


def without_table(folder):
    write_zip(folder / TEST_LABELS, {"readme.txt": "nothing"})


def without_column(folder):
    write_zip(folder / TEST_LABELS, {"GT-final_test.csv": "Filename;ClassId\na.ppm;1"})


def with_a_short_row(folder):
    write_zip(folder / TEST_LABELS, {"GT-final_test.csv": table("00000.ppm;50")})


def with_an_unknown_class(folder):
    write_zip(folder / TEST_LABELS, {"GT-final_test.csv": table(row("0.ppm", 43))})


def with_a_broken_picture(folder):
    names = [f"GTSRB/Final_Test/Images/{i:05d}.ppm" for i in range(3)]
    write_zip(folder / TEST, dict.fromkeys(names, ppm((1, 1, 1))[:100]))


def cut_short(folder):
    (folder / TEST).write_bytes((folder / TEST).read_bytes()[:200])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without_picture, r"Test_Images\.zip: expected .*/00001.ppm in it"),
        (without_table, r"Test_GT\.zip: expected a table"),
        (without_column, r"Test_GT\.zip: expected a column 'Roi.X1'"),
        (with_a_short_row, r"Test_GT\.zip: cannot be read"),
        (
            with_an_unknown_class,
            r"Test_GT\.zip: cannot be read: expected a class below 43",
        ),
        (with_a_broken_picture, r"Test_Images\.zip: cannot be read"),
        (cut_short, r"Test_Images\.zip: cannot be read"),
    ],
)
def test_damaged_archives_are_refused_by_name_and_nothing_is_written(
    tmp_path, damage, reason
):
    write_archives(tmp_path)
    damage(tmp_path / "gtsrb")
    with pytest.raises(DataError, match=reason):
        gtsrb(tmp_path)
    assert {path.suffix for path in (tmp_path / "gtsrb").iterdir()} == {".zip"}


def test_a_box_outside_its_picture_is_refused(tmp_path):
    write_archives(tmp_path, box="10;5;51;35")
    with pytest.raises(DataError, match=r"\(10, 5, 51, 35\), outside \(50, 40\)"):
        gtsrb(tmp_path)
