import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from lightsplit.data import LoaderBatches
from lightsplit.errors import ConfigError, DataError

VALUES = torch.arange(22.0)
DATASET = TensorDataset(VALUES, VALUES.long())


class Noisy(torch.utils.data.Dataset):
    """Adds noise of all three global generators to each sample."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        noise = torch.rand(()) + np.random.rand() + random.random()  # noqa: S311
        return index + noise, index


class BatchSampled(DataLoader):
    """Shuffles by a batch sampler with a generator of its own."""

    def __init__(self):
        sampler = RandomSampler(DATASET, generator=torch.Generator())
        batches = torch.utils.data.BatchSampler(sampler, 4, drop_last=False)
        super().__init__(DATASET, batch_sampler=batches)


LOADERS = {
    "plain": lambda: DataLoader(DATASET, batch_size=4),
    "shuffled": lambda: DataLoader(DATASET, batch_size=4, shuffle=True),
    "own generator": lambda: DataLoader(
        DATASET, batch_size=4, shuffle=True, generator=torch.Generator()
    ),
    "torch's generator": lambda: DataLoader(
        DATASET, batch_size=4, shuffle=True, generator=torch.default_generator
    ),
    "batch sampler": BatchSampled,
    "noisy": lambda: DataLoader(Noisy(), batch_size=5, shuffle=True),
    "list": lambda: [(VALUES[i : i + 4], VALUES[i : i + 4].long()) for i in (0, 4, 8)],
}


@pytest.fixture(params=LOADERS)
def loader(request):
    return LOADERS[request.param]()


def states():
    numpy = np.random.get_state()
    return (
        torch.get_rng_state().tolist(),
        (numpy[0], numpy[1].tolist(), *numpy[2:]),
        random.getstate(),
    )


def same(first, second):
    return all(map(torch.equal, first, second))


def test_two_passes_give_the_same_batches(loader):
    first = LoaderBatches(loader, seed=3, client=1)
    pass_one = [first[step] for step in range(3 * len(first))]
    torch.rand(5)
    second = LoaderBatches(loader, seed=3, client=1)
    pass_two = [second[step] for step in range(3 * len(second))]
    assert all(map(same, pass_one, pass_two))


def test_any_order_of_steps_gives_the_batches_of_the_straight_order(loader):
    straight = LoaderBatches(loader, seed=0, client=0)
    expected = [straight[step] for step in range(2 * len(straight))]
    jumping = LoaderBatches(loader, seed=0, client=0)
    for step in (len(expected) - 1, 0, 2, 2, 1, len(jumping), 0):
        torch.rand(3)
        assert same(jumping.batch(step), expected[step])


def test_the_training_between_batches_draws_as_if_there_were_no_loader(loader):
    before = states()
    batches = LoaderBatches(loader, seed=0, client=0)
    for step in (0, 1, len(batches), 0):
        batches[step]
        assert states() == before


def test_random_draws_of_the_training_do_not_change_the_batches():
    batches = LoaderBatches(LOADERS["noisy"](), seed=0, client=0)
    quiet = [batches[step] for step in range(len(batches))]
    for step, expected in enumerate(quiet):
        np.random.rand(step + 1)
        torch.rand(step + 1)
        assert same(batches[step], expected)


def test_every_epoch_of_a_shuffled_loader_has_every_sample_in_another_order():
    batches = LoaderBatches(LOADERS["shuffled"](), seed=0, client=0)
    epochs = [
        torch.cat([batches[e * len(batches) + i][1] for i in range(len(batches))])
        for e in range(2)
    ]
    assert not torch.equal(*epochs)
    assert all(torch.equal(epoch.sort().values, VALUES.long()) for epoch in epochs)


def test_clients_and_seeds_have_their_own_order():
    def order(seed, client):
        batches = LoaderBatches(LOADERS["shuffled"](), seed=seed, client=client)
        return tuple(batches[0][1].tolist())

    assert len({order(0, 0), order(0, 1), order(1, 0)}) == 3


class Short(list):
    def __len__(self):
        return 5


def test_a_loader_that_ends_before_its_length_is_refused():
    batches = LoaderBatches(Short([(VALUES, VALUES)] * 2), seed=0, client=4)
    batches[1]
    with pytest.raises(DataError, match="client 4 promised 5 batches, got 2"):
        batches[2]
    assert same(batches[0], (VALUES, VALUES))


class FailsOnce(torch.utils.data.Dataset):
    failed = False

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3 and not self.failed:
            self.failed = True
            raise OSError("unplugged")
        return index, index


def test_after_an_error_of_the_users_own_the_same_step_can_be_asked_again():
    batches = LoaderBatches(DataLoader(FailsOnce()), seed=0, client=0)
    with pytest.raises(OSError, match="unplugged"):
        batches[3]
    assert batches[3][1].tolist() == [3]


@pytest.mark.parametrize(
    ("loader", "reason"),
    [([], "client 0 has no batches"), (iter("ab"), "must have a length, but str_")],
)
def test_a_loader_without_a_length_is_refused(loader, reason):
    with pytest.raises(ConfigError, match=reason):
        LoaderBatches(loader, seed=0, client=0)


@pytest.mark.parametrize(
    ("batch", "got"), [((1, 2, 3), "tuple of 3"), ({"x": 1, "y": 2}, "dict")]
)
def test_a_batch_that_is_no_pair_is_refused(batch, got):
    with pytest.raises(DataError, match=rf"pairs \(x, y\), got {got}$"):
        LoaderBatches([batch], seed=0, client=0)[0]
