import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.backdoors import TRIGGERS, PoisonedBatches, Trials
from lightsplit.errors import ConfigError

SHAPE = (1, 4, 4)
BADNETS = TRIGGERS.create("badnets", target=0, classes=10, image_shape=SHAPE)


class Batches:
    """Grey images whose labels go round from 1 to 9."""

    def __init__(self, size=20):
        self.size = size

    def __len__(self):
        return 7

    def batch(self, step):
        labels = 1 + (torch.arange(self.size) + step) % 9
        return torch.full((self.size, *SHAPE), 0.5), labels


def poisoned(ratio, size=20, trigger=BADNETS, seed=0, client=0):
    return PoisonedBatches(Batches(size), trigger, ratio, seed=seed, client=client)


def rows(batches, step):
    """Return which rows are marked and which are labelled with the target."""
    images, labels = batches.batch(step)
    return images.flatten(1).amax(1) == 1, labels == 0


@settings(deadline=None, max_examples=60)
@given(ratio=st.floats(0.01, 1), size=st.integers(1, 40), step=st.integers(0, 99))
def test_the_share_of_samples_is_marked_and_relabelled_and_no_others(ratio, size, step):
    marked, relabelled = rows(poisoned(ratio, size), step)
    assert torch.equal(marked, relabelled)
    assert abs(int(marked.sum()) - ratio * size) < 1


def test_the_share_is_exact_on_average():
    batches = poisoned(0.3, size=5)
    total = sum(int(rows(batches, step)[0].sum()) for step in range(400))
    assert total / (400 * 5) == pytest.approx(0.3, abs=0.02)


@settings(deadline=None, max_examples=30)
@given(steps=st.lists(st.integers(0, 50), max_size=6))
def test_a_step_is_poisoned_the_same_after_any_earlier_steps(steps):
    used = poisoned(0.4)
    for step in steps:
        for before, now in zip(
            used.batch(step), poisoned(0.4).batch(step), strict=True
        ):
            assert torch.equal(before, now)


def test_steps_clients_and_seeds_have_their_own_samples_poisoned():
    draws = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    chosen = {
        tuple(rows(poisoned(0.5, seed=seed, client=client), 9 * step)[0].tolist())
        for seed, client, step in draws
    }
    assert len(chosen) == 4


def test_only_samples_that_the_trigger_is_about_are_taken():
    trigger = TRIGGERS.create("semantic-label", target=0, classes=10, image_shape=SHAPE)
    honest = Batches().batch(0)[1]
    _, labels = poisoned(1.0, trigger=trigger).batch(0)
    assert torch.equal(labels == 0, honest == 1)


def test_the_honest_batches_are_not_touched():
    source = Batches()
    images, labels = source.batch(0)
    source.batch = lambda step: (images, labels)
    PoisonedBatches(source, BADNETS, 1.0, seed=0, client=0).batch(0)
    assert images.eq(0.5).all()
    assert not labels.eq(0).any()


def test_an_epoch_is_as_long_as_the_honest_one():
    assert len(poisoned(0.5)) == 7


@pytest.mark.parametrize("ratio", [0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(ratio):
    with pytest.raises(ConfigError, match="poison_ratio must be above 0 and up to 1"):
        poisoned(ratio)


def test_trials_are_marked_and_leave_the_target_class_out():
    test = [(torch.zeros(4, *SHAPE), torch.tensor([0, 1, 0, 2]))]
    ((images, labels),) = Trials(test, BADNETS)
    assert len(images) == 2
    assert labels.tolist() == [0, 0]
    assert images.flatten(1).amax(1).eq(1).all()


def test_unmarked_trials_are_the_same_images_without_the_mark():
    test = [(torch.rand(4, *SHAPE), torch.tensor([0, 1, 0, 2]))]
    ((images, labels),) = Trials(test, BADNETS, is_marked=False)
    assert torch.equal(images, test[0][0][[1, 3]])
    assert labels.tolist() == [0, 0]


def test_a_batch_without_a_fitting_sample_gives_no_trial():
    assert not list(Trials([(torch.zeros(2, *SHAPE), torch.zeros(2))], BADNETS))
