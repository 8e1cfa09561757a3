import numpy as np
import pytest
import torch

from lightsplit.data import ArrayForm
from lightsplit.errors import ConfigError, DataError, MissingDataError

IMAGES = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)


def archive(tmp_path, inputs, labels=(0, 1)):
    file = tmp_path / "data.npz"
    np.savez(file, inputs=inputs, labels=np.array(labels))
    return file


def test_bytes_become_fractions_and_channels_come_first(tmp_path):
    samples = ArrayForm((3, 4, 4), classes=2).file(archive(tmp_path, IMAGES))
    expected = torch.from_numpy(IMAGES.transpose(0, 3, 1, 2)).float() / 255
    assert torch.equal(torch.stack([samples[0][0], samples[1][0]]), expected)
    assert samples.targets.tolist() == [0, 1]


def test_grey_images_get_a_channel(tmp_path):
    samples = ArrayForm((1, 4, 4), classes=2).file(archive(tmp_path, IMAGES[..., 0]))
    assert samples[0][0].shape == (1, 4, 4)


def test_numbers_are_normalised_and_labels_may_be_numbers(tmp_path):
    form = ArrayForm((2,), mean=(1.0, 2.0), std=(1.0, 2.0))
    samples = form.file(archive(tmp_path, np.array([[1.0, 4.0]]), [0.5]))
    values, label = samples[0]
    assert values.tolist() == [0, 1]
    assert label == 0.5


def test_other_shapes_and_labels_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected samples of shape \(3, 5, 5\)"):
        ArrayForm((3, 5, 5), classes=2).file(archive(tmp_path, IMAGES))
    with pytest.raises(DataError, match="expected labels from 0 to 0, got 0 to 1"):
        ArrayForm((3, 4, 4), classes=1).file(archive(tmp_path, IMAGES))
    with pytest.raises(DataError, match="2 inputs but 1 labels"):
        ArrayForm((3, 4, 4), classes=1).file(archive(tmp_path, IMAGES, [0]))


def test_archives_that_cannot_be_read_are_refused(tmp_path):
    form = ArrayForm((3, 4, 4), classes=2)
    with pytest.raises(DataError, match=r"no array 'x'; the arrays are inputs, labels"):
        form.file(archive(tmp_path, IMAGES), inputs="x")
    with pytest.raises(MissingDataError, match="there is no file"):
        form.file(tmp_path / "nothing.npz")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not an NPZ archive"):
        form.file(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("inputs", "labels", "reason"),
    [
        (IMAGES, [0, 0.7], "labels are classes, but some are not whole"),
        (IMAGES, ["a", "b"], "expected numbers, got an array of <U1"),
        (IMAGES, [[0, 1], [1, 1]], r"one class for each sample.*\(2, 2\)"),
        (IMAGES.astype(str), [0, 1], "expected numbers, got an array of <U3"),
        (IMAGES * np.nan, [0, 1], "some are missing or infinite"),
    ],
)
def test_values_that_are_no_samples_are_refused_by_name(
    tmp_path, inputs, labels, reason
):
    with pytest.raises(DataError, match=rf"data\.npz: .*{reason}"):
        ArrayForm((3, 4, 4), classes=2).file(archive(tmp_path, inputs, labels))


def test_a_label_can_be_several_marks(tmp_path):
    form = ArrayForm((3, 4, 4), marks=3)
    samples = form.file(archive(tmp_path, IMAGES, [[0, 1, 1], [1.0, 0, 0]]))
    assert samples[0][1].tolist() == [0, 1, 1]
    assert samples.targets.dtype == torch.int64
    with pytest.raises(DataError, match="expected marks of 0 and 1"):
        form.file(archive(tmp_path, IMAGES, [[0, 1, 2], [1, 0, 0]]))
    with pytest.raises(DataError, match=r"expected 3 marks for each.*\(2, 2\)"):
        form.file(archive(tmp_path, IMAGES, [[0, 1], [1, 0]]))
    with pytest.raises(ConfigError, match="one of both"):
        ArrayForm((3, 4, 4), classes=2, marks=3)


def test_samples_without_labels_can_be_read(tmp_path):
    form = ArrayForm((3, 4, 4), classes=2)
    file = archive(tmp_path, IMAGES)
    new, known = form.unlabelled(file), form.file(file)
    assert len(new) == 2
    assert all(torch.equal(new[row], known[row][0]) for row in range(2))
