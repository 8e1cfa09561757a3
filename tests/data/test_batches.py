import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.data import Batches, Samples
from lightsplit.errors import ConfigError

LABELS = torch.arange(256)
SAMPLES = Samples(LABELS.to(torch.uint8).view(-1, 1, 1, 1), LABELS)

INDICES = st.lists(st.integers(0, 255), min_size=1, max_size=70, unique=True)
SIZES = st.integers(1, 80)


def epoch_labels(batches, epoch):
    start = epoch * len(batches)
    return [batches[start + i][1] for i in range(len(batches))]


@settings(deadline=None, max_examples=100)
@given(indices=INDICES, size=SIZES, epoch=st.integers(0, 5))
def test_an_epoch_has_every_sample_once_in_batches_of_nearly_one_size(
    indices, size, epoch
):
    batches = Batches(SAMPLES, indices, size, seed=1, client=0)
    labels = epoch_labels(batches, epoch)
    sizes = [len(batch) for batch in labels]
    assert len(batches) == batches.steps_per_epoch == math.ceil(len(indices) / size)
    assert sorted(torch.cat(labels).tolist()) == sorted(indices)
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= size
    if size >= 3 and len(indices) >= 2:
        assert min(sizes) >= 2


@settings(deadline=None, max_examples=60)
@given(indices=INDICES, size=SIZES, steps=st.lists(st.integers(0, 300), max_size=6))
def test_a_step_has_the_same_batch_whatever_was_asked_before(indices, size, steps):
    used = Batches(SAMPLES, indices, size, seed=5, client=2)
    for step in steps:
        fresh = Batches(SAMPLES, indices, size, seed=5, client=2)
        for before, now in zip(used.batch(step), fresh[step], strict=True):
            assert torch.equal(before, now)


def test_images_and_labels_belong_together():
    images, labels = Batches(SAMPLES, range(40), 8, seed=0, client=0)[3]
    assert torch.equal((images.flatten() * 255).round().long(), labels)


def test_epochs_clients_and_seeds_have_their_own_order():
    def order(seed, client, epoch):
        batches = Batches(SAMPLES, range(60), 60, seed=seed, client=client)
        return tuple(batches[epoch][1].tolist())

    assert len({order(0, 0, 0), order(1, 0, 0), order(0, 1, 0), order(0, 0, 1)}) == 4


def test_batches_do_not_disturb_torchs_generator():
    before = torch.get_rng_state()
    Batches(SAMPLES, range(10), 3, seed=0, client=0).batch(7)
    assert torch.equal(before, torch.get_rng_state())


def test_batches_without_an_end_are_not_iterated_by_accident():
    with pytest.raises(TypeError, match="not iterable"):
        iter(Batches(SAMPLES, range(10), 3, seed=0, client=0))


@pytest.mark.parametrize(
    ("indices", "size", "reason"),
    [
        ([], 4, "client 3 has no samples"),
        ([1, 2], 0, "batch_size .* at least 1, got 0"),
    ],
)
def test_batches_that_cannot_be_are_refused(indices, size, reason):
    with pytest.raises(ConfigError, match=reason):
        Batches(SAMPLES, indices, size, seed=0, client=3)


def test_a_step_before_the_first_is_refused():
    with pytest.raises(ConfigError, match="counted from 0, got -1"):
        Batches(SAMPLES, [1, 2], 2, seed=0, client=0)[-1]
