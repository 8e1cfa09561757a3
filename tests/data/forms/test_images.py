import numpy as np
import pytest
import torch
from PIL import Image

from lightsplit.data import ImageForm
from lightsplit.errors import ConfigError, DataError, MissingDataError

FORM = ImageForm(("cat", "dog"), (8, 8))


@pytest.fixture
def folder(tmp_path, picture):
    picture(tmp_path / "dog" / "1.png", seed=1)
    picture(tmp_path / "cat" / "2.png", seed=2)
    picture(tmp_path / "cat" / "0.png", seed=0)
    (tmp_path / "cat" / "notes.txt").write_text("not a picture")
    return tmp_path


def test_the_folder_is_the_class(folder):
    images = FORM.folder(folder)
    assert [file.name for file in images.files] == ["0.png", "1.png", "2.png"]
    assert images.targets.tolist() == [0, 1, 0]


def test_values_are_the_pictures_bytes_by_255(tmp_path, picture):
    array = picture(tmp_path / "cat" / "0.png")
    image, label = FORM.folder(tmp_path)[0]
    assert torch.equal(image, torch.from_numpy(array)[None].float() / 255)
    assert label == 0


def test_channels_are_normalised_one_by_one(tmp_path, picture):
    array = picture(tmp_path / "cat" / "0.png", (8, 8, 3))
    form = ImageForm(("cat",), (8, 8), 3, mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0))
    expected = (array.transpose(2, 0, 1) / 255 - [[[0.1]], [[0.2]], [[0.3]]]) / [
        [[1]],
        [[2]],
        [[4]],
    ]
    assert np.allclose(form.folder(tmp_path)[0][0], expected, atol=1e-6)


def test_other_sizes_and_colours_are_converted(tmp_path, picture):
    picture(tmp_path / "cat" / "0.png", (16, 12, 3))
    assert FORM.folder(tmp_path)[0][0].shape == (1, 8, 8)


def test_a_list_keeps_its_order(folder):
    (folder / "labels.csv").write_text("file,label\ndog/1.png,dog\ncat/2.png,cat\n")
    images = FORM.listed(folder / "labels.csv")
    assert [file.name for file in images.files] == ["1.png", "2.png"]
    assert images.targets.tolist() == [1, 0]


def test_pictures_without_classes_can_be_read(folder):
    pictures = FORM.unlabelled(folder / "cat")
    assert len(pictures) == 2
    assert pictures[0].shape == (1, 8, 8)


def test_a_class_that_the_task_does_not_know_is_refused(folder, picture):
    picture(folder / "bird" / "3.png")
    with pytest.raises(
        DataError, match=r"bird.*not one of the task's classes, cat, dog"
    ):
        FORM.folder(folder)


def test_an_undeclared_label_in_a_list_is_refused_with_its_line(folder):
    (folder / "labels.csv").write_text("file,label\ncat/0.png,cat\ndog/1.png,wolf\n")
    with pytest.raises(DataError, match=r"labels\.csv, line 3: the class 'wolf'"):
        FORM.listed(folder / "labels.csv")


def test_a_file_that_is_no_picture_is_refused_by_name(folder):
    (folder / "cat" / "9.png").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"9\.png: this is not a picture"):
        FORM.folder(folder)


def test_a_damaged_picture_is_refused_by_name(folder):
    file = folder / "cat" / "0.png"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(DataError, match=r"0\.png"):
        FORM.folder(folder)[0]


def test_an_empty_or_missing_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="found none"):
        FORM.folder(tmp_path)
    with pytest.raises(MissingDataError, match="no folder"):
        FORM.folder(tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match="--data"):
        FORM.folder(None)
    with pytest.raises(DataError, match="found none"):
        FORM.unlabelled(tmp_path)


@pytest.mark.parametrize("options", [{"size": (0, 8)}, {"size": (8, 8), "channels": 2}])
def test_impossible_forms_are_refused(options):
    with pytest.raises(ConfigError):
        ImageForm(("a",), **options)


def test_sixteen_bits_keep_their_greys(tmp_path):
    """Pillow would clip all above 255, so that a scan is white."""
    deep = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    (tmp_path / "cat").mkdir()
    for name in ("0.png", "1.tif"):
        Image.fromarray(deep).save(tmp_path / "cat" / name)
    for image, _ in FORM.folder(tmp_path):
        assert np.allclose(image[0], deep / 65_535)
    coloured = ImageForm(("cat",), (4, 4), 3).folder(tmp_path)[0][0]
    assert coloured.shape == (3, 4, 4)
    assert coloured.std() > 0.1


def test_a_picture_whose_white_nobody_knows_is_refused(tmp_path):
    (tmp_path / "cat").mkdir()
    Image.fromarray(np.zeros((8, 8), np.float32)).save(tmp_path / "cat" / "0.tif")
    with pytest.raises(DataError, match=r"0\.tif: the picture has 32 bits a value"):
        FORM.folder(tmp_path)


def test_a_listed_picture_that_is_absent_is_named(folder):
    (folder / "labels.csv").write_text("file,label\ncat/7.png,cat\n")
    with pytest.raises(MissingDataError, match=r"there is no file .*7\.png"):
        FORM.listed(folder / "labels.csv")
