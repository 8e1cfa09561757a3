import numpy as np
import pytest
import torch
from PIL import Image

from lightsplit.data import MaskForm
from lightsplit.errors import DataError

FORM = MaskForm((8, 8))


def test_a_mask_gives_a_class_for_every_pixel(tmp_path, picture):
    array = picture(tmp_path / "image" / "a.png")
    mask = picture(tmp_path / "label" / "a.png", values=(0, 255))
    image, labels = FORM.folder(tmp_path)[0]
    assert torch.equal(image, torch.from_numpy(array)[None].float() / 255)
    assert torch.equal(labels, torch.from_numpy(mask == 255).long())


def test_both_are_resized(tmp_path, picture):
    picture(tmp_path / "image" / "a.png", (16, 16))
    picture(tmp_path / "label" / "a.png", (16, 16), values=(0, 255))
    image, labels = FORM.folder(tmp_path)[0]
    assert image.shape == (1, 8, 8)
    assert labels.shape == (8, 8)
    assert set(labels.unique().tolist()) <= {0, 1}


def test_a_mask_of_another_size_is_refused(tmp_path, picture):
    picture(tmp_path / "image" / "a.png", (8, 8))
    picture(tmp_path / "label" / "a.png", (8, 6), values=(0, 255))
    with pytest.raises(DataError, match=r"a\.png: the mask is 8 x 6.*8 x 8"):
        FORM.folder(tmp_path)


def test_a_missing_mask_is_refused(tmp_path, picture):
    picture(tmp_path / "image" / "a.png")
    (tmp_path / "label").mkdir()
    with pytest.raises(DataError, match="there is no mask a"):
        FORM.folder(tmp_path)


def test_an_undeclared_grey_value_is_refused(tmp_path, picture):
    picture(tmp_path / "image" / "a.png")
    picture(tmp_path / "label" / "a.png", values=(0, 7))
    with pytest.raises(DataError, match="the grey value 7 is not one of the task's"):
        FORM.folder(tmp_path)


def test_no_pictures_are_refused(tmp_path):
    for name in ("image", "label"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="found none"):
        FORM.folder(tmp_path)


def test_masks_of_sixteen_bits_keep_their_values(tmp_path, picture):
    """300 is not 255, which is what Pillow would make of it."""
    array = np.full((8, 8), 300, dtype=np.uint16)
    array[0] = 0
    picture(tmp_path / "image" / "a.png")
    (tmp_path / "label").mkdir()
    Image.fromarray(array).save(tmp_path / "label" / "a.png")
    labels = MaskForm((8, 8), (0, 300)).folder(tmp_path)[0][1]
    assert labels.sum(1).tolist() == [0] + [8] * 7
    with pytest.raises(DataError, match="the grey value 300 is not one"):
        FORM.folder(tmp_path)


def test_pictures_without_masks_can_be_read(tmp_path, picture):
    picture(tmp_path / "image" / "a.png")
    picture(tmp_path / "label" / "a.png", values=(0, 255))
    new = FORM.unlabelled(tmp_path / "image")
    assert [file.name for file in new.files] == ["a.png"]
    assert torch.equal(new[0], FORM.folder(tmp_path)[0][0])
