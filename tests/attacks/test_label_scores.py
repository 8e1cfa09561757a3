"""Scores of inferred labels and their chance levels."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, lists
from hypothesis.strategies import permutations as orders
from sklearn.metrics import roc_auc_score

from lightsplit.attacks.label_scores import (
    hint_accuracy,
    leak_auc,
    matched_accuracy,
)
from lightsplit.errors import AuditError

CLASSES = 4
some_labels = lists(integers(0, CLASSES - 1), min_size=2, max_size=30)


@settings(deadline=None, max_examples=30)
@given(labels=some_labels, names=orders(range(CLASSES)))
def test_the_names_of_clusters_do_not_matter(labels, names):
    truth = torch.tensor(labels)
    assert matched_accuracy(torch.tensor(names)[truth], truth).value == 1


@settings(deadline=None, max_examples=30)
@given(labels=some_labels, seed=integers(0, 99))
def test_the_matching_is_the_best_of_all_namings(labels, seed):
    truth = torch.tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    clusters = torch.randint(CLASSES, truth.shape, generator=generator)
    best = max(
        float((torch.tensor(names)[clusters] == truth).float().mean())
        for names in permutations(range(CLASSES))
    )
    assert matched_accuracy(clusters, truth).value == pytest.approx(best, abs=1e-6)


def test_the_chance_of_matched_clusters_lies_above_one_in_classes():
    labels, clusters = torch.randint(10, (2, 100)).unbind()
    result = matched_accuracy(clusters, labels)
    assert 0.1 < result.chance < 0.3
    assert abs(result.value - result.chance) < 0.1


def test_only_rows_that_are_not_hints_are_counted():
    labels = torch.tensor([0, 1, 0, 1])
    guesses = torch.tensor([0, 1, 1, 1])
    result = hint_accuracy(guesses, labels, hints=torch.tensor([0, 1]))
    assert (result.value, result.samples) == (0.5, 2)


def test_a_score_that_falls_with_the_class_leaks_as_much_as_one_that_rises():
    labels = torch.tensor([0, 0, 1, 1, 1])
    rising = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    assert leak_auc(rising, labels).value == leak_auc(-rising, labels).value == 1


def test_the_leak_agrees_with_scikit_learn_with_ties():
    labels, scores = torch.randint(3, (200,)), torch.randint(20, (200,)).float()
    areas = [roc_auc_score(labels == label, scores) for label in range(3)]
    expected = sum(max(area, 1 - area) for area in areas) / 3
    assert leak_auc(scores, labels).value == pytest.approx(expected)


def test_the_chance_of_a_leak_lies_above_a_half_and_meets_it_with_many_samples():
    few, many = (
        leak_auc(torch.rand(count), torch.randint(5, (count,))) for count in (40, 4000)
    )
    assert few.chance > 0.53 > many.chance > 0.5


def test_one_class_alone_cannot_be_told_from_a_rest():
    with pytest.raises(AuditError, match="at least two classes"):
        leak_auc(torch.rand(5), torch.zeros(5, dtype=torch.long))


def test_a_missing_label_is_refused():
    with pytest.raises(AuditError, match="each of 5 rows, got 4"):
        leak_auc(torch.rand(5), torch.arange(4))
