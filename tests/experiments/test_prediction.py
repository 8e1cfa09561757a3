"""Predictions in the task's own words, and the files that they are about."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from lightsplit.data import ArrayForm, ImageForm, MaskForm, hold_out
from lightsplit.data.forms.pictures import read_mask, write_mask
from lightsplit.data.own import OwnSamples
from lightsplit.experiments.prediction import Predictor, sample_names


def chosen(form, classes, output):
    predictor = Predictor(None, SimpleNamespace(form=form, classes=classes))
    return predictor.chosen(torch.tensor(output))


@pytest.mark.parametrize(
    ("form", "classes", "output", "expected"),
    [
        (ImageForm(("cat", "dog"), (8, 8)), 2, [[1.0, 2.0]], ["dog"]),
        (ArrayForm((4,), classes=2), 2, [[1.0, 2.0]], [1]),
        (ArrayForm((4,)), None, [2.5], [2.5]),
        (ArrayForm((4,), marks=2), None, [[-1.0, 2.0]], [[-1.0, 2.0]]),
    ],
)
def test_classes_have_names_and_numbers_are_themselves(form, classes, output, expected):
    assert chosen(form, classes, output) == expected


def test_pixels_have_their_grey_values():
    scores = [[[[0.0, 3.0]], [[1.0, 2.0]]]]  # (1, 2 classes, 1, 2)
    (mask,) = chosen(MaskForm((1, 2), (7, 300)), None, scores)
    assert mask.tolist() == [[300, 7]]


@pytest.mark.parametrize("greys", [[[0, 255]], [[7, 300]]])
def test_a_mask_that_is_written_can_be_read(tmp_path, greys):
    write_mask(tmp_path / "mask.png", torch.tensor(greys))
    assert read_mask(tmp_path / "mask.png", (1, 2)).tolist() == greys


def test_samples_that_were_held_out_keep_their_files_names(tmp_path):
    for kind in ("image", "label"):
        (tmp_path / kind).mkdir()
        for number in range(10):
            file = tmp_path / kind / f"{number}.png"
            Image.fromarray(np.zeros((8, 8), np.uint8)).save(file)
    whole = MaskForm((8, 8)).folder(tmp_path)
    _, test = hold_out(whole, 0.3)
    names = sample_names(OwnSamples(test))
    assert names == [whole.files[row][0].name for row in test.indices]
    assert names != [file.name for file, _ in whole.files[:3]]


def test_samples_without_files_have_numbers():
    rows = torch.utils.data.TensorDataset(torch.zeros(2, 1), torch.zeros(2))
    assert sample_names(OwnSamples(rows)) == ["0", "1"]
