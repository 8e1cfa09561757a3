"""Pooled halves: every image is in one of them, in scikit-learn's own order."""

import torch
from sklearn.model_selection import train_test_split

from lightsplit.data import Dataset, Samples, pooled_halves


def numbered(first, count):
    """Return images whose one pixel and label say which they are."""
    numbers = torch.arange(first, first + count)
    return Samples(numbers.to(torch.uint8).view(-1, 1, 1, 1), numbers)


def halves(train, test):
    whole = Dataset("numbers", numbered(0, train), numbered(train, test), train + test)
    return pooled_halves(whole)


def test_the_halves_are_those_of_scikit_learn():
    found = halves(50, 11)
    clients, attackers = train_test_split(
        torch.arange(61), train_size=0.5, random_state=42
    )
    assert found.train.labels.tolist() == clients.tolist()
    assert found.test.labels.tolist() == attackers.tolist()


def test_every_image_is_in_one_half_with_its_label():
    found = halves(50, 10)
    assert len(found.train) == len(found.test) == 30
    labels = torch.cat([found.train.labels, found.test.labels])
    assert sorted(labels.tolist()) == list(range(60))
    assert torch.equal(found.train.images.flatten().long(), found.train.labels)
