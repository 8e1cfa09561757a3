import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.data import label_histogram, partition
from lightsplit.errors import ConfigError

ALPHAS = st.none() | st.sampled_from([5e-324, 1e-3, 0.1, 1.0, 100.0, 1e308])


@st.composite
def cases(draw):
    """Draw labels, and no more clients than have two samples each."""
    labels = draw(st.lists(st.integers(0, 6), min_size=2, max_size=120))
    clients = draw(st.integers(1, len(labels) // 2))
    return torch.tensor(labels), clients


@settings(deadline=None, max_examples=150)
@given(case=cases(), alpha=ALPHAS, seed=st.integers(0, 2**40))
def test_every_sample_has_one_holder_and_every_client_two_samples(case, alpha, seed):
    labels, clients = case
    parts = partition(labels, clients, alpha=alpha, seed=seed)
    assert len(parts) == clients
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
    assert all(len(part) >= 2 and part.dtype == torch.int64 for part in parts)
    if alpha is None:
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@settings(deadline=None, max_examples=50)
@given(case=cases(), alpha=ALPHAS, seed=st.integers(0, 2**40))
def test_the_same_seed_gives_the_same_parts(case, alpha, seed):
    labels, clients = case
    first, again = (partition(labels, clients, alpha=alpha, seed=seed) for _ in "ab")
    assert all(map(torch.equal, first, again))


@settings(deadline=None, max_examples=50)
@given(case=cases(), alpha=ALPHAS, seed=st.integers(0, 2**40))
def test_the_histogram_counts_every_sample_once(case, alpha, seed):
    labels, clients = case
    parts = partition(labels, clients, alpha=alpha, seed=seed)
    histogram = label_histogram(labels, parts, classes=8)
    assert histogram.shape == (clients, 8)
    assert histogram.dtype == torch.int64
    assert histogram.sum(1).tolist() == [len(part) for part in parts]
    assert torch.equal(histogram.sum(0), torch.bincount(labels, minlength=8))


@pytest.mark.parametrize("alpha", [None, 0.5])
def test_another_seed_gives_other_parts(alpha):
    labels = torch.arange(200) % 10
    first, second = (partition(labels, 4, alpha=alpha, seed=seed) for seed in (0, 1))
    assert not all(map(torch.equal, first, second))


def test_a_smaller_alpha_gives_a_client_fewer_classes():
    labels = torch.arange(5000) % 10
    held = [
        (label_histogram(labels, partition(labels, 10, alpha=a, seed=0), 10) > 5).sum()
        for a in (0.01, 0.3, 100.0)
    ]
    assert held[0] < held[1] < held[2]


def test_a_large_alpha_comes_close_to_equal_shares():
    labels = torch.arange(4000) % 4
    parts = partition(labels, 8, alpha=1e9, seed=0)
    histogram = label_histogram(labels, parts, 4)
    assert (histogram - 125).abs().max() <= 1


def test_no_client_stays_short_when_one_holds_everything():
    parts = partition(torch.zeros(41, dtype=torch.int64), 20, alpha=1e-6, seed=0)
    assert sorted(map(len, parts)) == [2] * 19 + [3]


@pytest.mark.parametrize(
    ("clients", "alpha", "reason"),
    [
        (0, None, "clients must be at least 1, got 0"),
        (6, None, "need 12 samples, got 10"),
        (6, 1.0, "need 12 samples, got 10"),
        (2, 0.0, "alpha must be a positive number or None, got 0.0"),
        (2, -1.0, "got -1.0"),
        (2, float("nan"), "got nan"),
        (2, float("inf"), "got inf"),
    ],
)
def test_a_partition_that_cannot_be_is_refused(clients, alpha, reason):
    with pytest.raises(ConfigError, match=reason):
        partition(torch.zeros(10, dtype=torch.int64), clients, alpha=alpha, seed=0)


def test_a_minimum_below_one_is_refused():
    with pytest.raises(ConfigError, match="minimum must be at least 1, got 0"):
        partition(torch.zeros(4), 2, alpha=None, seed=0, minimum=0)


def test_a_histogram_refuses_labels_outside_the_classes():
    with pytest.raises(ConfigError, match="between 0 and 1, got 0 to 2"):
        label_histogram(torch.tensor([0, 2]), [torch.tensor([0])], classes=2)
