"""Texts against their originals."""

import pytest
import torch

from lightsplit.errors import ConfigError
from lightsplit.metrics import evaluate

TEXTS = torch.tensor([[1, 2, 3, -1], [4, 5, -1, -1], [6, 7, 8, 9]])


def scores(guesses, name):
    return evaluate(torch.tensor(guesses), TEXTS, kind="text")[name].tolist()


def test_a_copy_is_perfect_in_every_metric():
    found = evaluate(TEXTS, TEXTS, kind="text")
    assert set(found) == {"token_accuracy", "token_f1", "text_reidentification"}
    assert all(value.eq(1).all() for value in found.values())


def test_accuracy_counts_places_and_f1_does_not():
    guesses = [[3, 2, 1, 7], [5, 4, -1, -1], [6, 6, 6, 6]]
    assert scores(guesses, "token_accuracy") == pytest.approx([1 / 3, 0, 1 / 4])
    assert scores(guesses, "token_f1") == pytest.approx([6 / 7, 1, 2 / 8])


def test_a_guess_without_any_token_in_common_identifies_by_chance_only():
    found = scores([[90] * 4] * 3, "text_reidentification")
    assert found == pytest.approx([1 / 3] * 3)


def test_texts_that_are_the_same_give_each_other_away():
    twice = torch.cat([TEXTS, TEXTS])
    found = evaluate(twice, twice, kind="text")["text_reidentification"]
    assert found.eq(1).all()


def test_numbers_that_are_not_whole_are_no_tokens():
    with pytest.raises(ConfigError, match="whole numbers"):
        evaluate(TEXTS.float(), TEXTS, kind="text")
