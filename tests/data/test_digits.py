from importlib.resources import files

import numpy as np
import pytest
import torch

from lightsplit.data import DATASETS


def test_digits_need_no_folder_and_are_always_the_same(tmp_path):
    first = DATASETS.create("digits")
    again = DATASETS.create("digits", data_dir=tmp_path / "absent")
    assert torch.equal(first.train.images, again.train.images)
    assert torch.equal(first.test.labels, again.test.labels)


def test_digits_are_split_into_1437_and_360_with_a_fifth_of_every_class():
    digits = DATASETS.create("digits")
    train, test = (
        torch.bincount(part.labels, minlength=10)
        for part in (digits.train, digits.test)
    )
    assert (len(digits.train), len(digits.test)) == (1437, 360)
    assert ((train + test) / 5 - test).abs().max() < 1


def test_digits_are_stretched_to_all_bytes():
    digits = DATASETS.create("digits")
    assert digits.train.shape == (1, 8, 8)
    assert set(digits.train.images.unique().tolist()) == {
        round(value * 255 / 16) for value in range(17)
    }


def test_the_stored_digits_are_scikit_learns():
    theirs = pytest.importorskip("sklearn.datasets").load_digits()
    with np.load(str(files("lightsplit.data") / "files" / "digits.npz")) as stored:
        assert np.array_equal(stored["images"], theirs.images)
        assert np.array_equal(stored["labels"], theirs.target)
