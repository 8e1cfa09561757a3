import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.data import Dataset, Samples
from lightsplit.errors import ConfigError, DataError


def numbered(count, shape=(1, 2, 2)):
    """Return samples whose label is their position and whose pixels repeat it."""
    labels = torch.arange(count)
    images = labels.to(torch.uint8).view(-1, 1, 1, 1).expand(count, *shape)
    return Samples(images.contiguous(), labels)


def test_a_batch_is_float_from_zero_to_one_and_the_bytes_stay_bytes():
    samples = Samples(
        torch.tensor([0, 51, 255], dtype=torch.uint8).view(3, 1, 1, 1), torch.arange(3)
    )
    images, labels = samples.batch([2, 0, 1])
    assert images.dtype == torch.float32
    torch.testing.assert_close(images.flatten(), torch.tensor([1.0, 0.0, 0.2]))
    assert labels.tolist() == [2, 0, 1]
    assert samples.images.dtype == torch.uint8


def test_a_subset_holds_the_samples_in_the_order_of_the_indices():
    subset = numbered(10).subset(torch.tensor([7, 1, 7]))
    assert subset.labels.tolist() == [7, 1, 7]
    assert subset.images[:, 0, 0, 0].tolist() == [7, 1, 7]


def test_the_shape_is_that_of_one_image():
    assert numbered(4, shape=(3, 5, 6)).shape == (3, 5, 6)
    assert len(numbered(4)) == 4


@settings(deadline=None, max_examples=40)
@given(count=st.integers(1, 60), n=st.integers(1, 80), seed=st.integers(0, 2**32))
def test_a_limit_keeps_n_different_samples_or_all(count, n, seed):
    kept = numbered(count).limit(n, seed).labels.tolist()
    assert len(kept) == min(n, count)
    assert sorted(set(kept)) == kept
    assert kept == numbered(count).limit(n, seed).labels.tolist()


def test_a_smaller_limit_keeps_a_subset_of_a_larger_limits_samples():
    few, many = (set(numbered(50).limit(n, 3).labels.tolist()) for n in (5, 20))
    assert few < many


def test_another_seed_keeps_other_samples():
    first, second = (numbered(200).limit(20, seed).labels for seed in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("n", [0, -3])
def test_a_limit_below_one_is_refused(n):
    with pytest.raises(ConfigError, match=f"at least 1 sample, got {n}"):
        numbered(3).limit(n, 0)


@pytest.mark.parametrize(
    ("images", "labels", "reason"),
    [
        (torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64), "uint8"),
        (
            torch.zeros(2, 4, 4, dtype=torch.uint8),
            torch.zeros(2, dtype=torch.int64),
            r"\(N, C, H, W\)",
        ),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.zeros(2), "int64"),
        (
            torch.zeros(2, 1, 4, 4, dtype=torch.uint8),
            torch.zeros(3, dtype=torch.int64),
            "2 images but 3 labels",
        ),
    ],
)
def test_samples_of_another_form_are_refused(images, labels, reason):
    with pytest.raises(DataError, match=reason):
        Samples(images, labels)


def test_training_and_test_images_have_one_shape():
    with pytest.raises(DataError, match=r"training images are \(1, 2, 2\)"):
        Dataset("odd", numbered(2), numbered(2, shape=(1, 3, 3)), classes=2)
