"""A kind of truth takes what is to be found out from a batch, and gives it back."""

import pytest
import torch

from lightsplit.errors import AuditError, ConfigError
from lightsplit.truths import NOTHING, Column, ImageTruth, TableTruth, TextTruth

TABLE = TableTruth(
    (Column("age", 50.0, 10.0), Column("sex", categories=("f", "m")), Column("gone"))
)


def test_images_lose_the_normalisation_of_the_task():
    truth = ImageTruth((3, 4, 4), mean=(0.4, 0.5, 0.6), std=0.2)
    pixels = torch.rand(5, 3, 4, 4)
    assert torch.allclose(truth.samples(truth.inputs(pixels)), pixels, atol=1e-6)
    assert not torch.allclose(truth.inputs(pixels), pixels)


def test_images_that_were_not_normalised_stay_the_very_same_tensor():
    truth, pixels = ImageTruth((1, 4, 4)), torch.rand(5, 1, 4, 4)
    assert truth.samples(pixels) is pixels
    assert truth.inputs(pixels) is pixels


def test_a_table_finds_the_places_of_its_columns():
    places = {column.name: place for column, place in TABLE.places()}
    assert places == {"age": slice(0, 1), "sex": slice(1, 3), "gone": slice(3, 4)}
    assert TABLE.shape == (4,)


def test_a_column_is_read_in_its_own_unit():
    age, sex, _ = TABLE.columns
    assert age.text(torch.tensor([1.5])) == "65"
    assert sex.text(torch.tensor([0.2, 0.7])) == "m"
    assert sex.text(torch.zeros(2)) == "–"


def test_padding_is_no_token():
    tokens = torch.tensor([[5, 7, 0]])
    assert TextTruth(3).samples(tokens).tolist() == [[5, 7, NOTHING]]
    masked = {"input_ids": tokens, "attention_mask": torch.tensor([[1, 0, 1]])}
    assert TextTruth(3).samples(masked).tolist() == [[5, NOTHING, 0]]


def test_a_text_is_legible_if_the_tokenizer_can_read_tokens():
    tokens = torch.tensor([5, 7, NOTHING])
    assert TextTruth(3).text(tokens) == "5 7"
    legible = TextTruth(3, read=lambda found: "-".join("abcdefgh"[i] for i in found))
    assert legible.text(tokens) == "f-h"


@pytest.mark.parametrize(
    ("truth", "inputs", "reason"),
    [
        (ImageTruth((1, 4, 4)), {"x": 1}, "expected images"),
        (TABLE, torch.zeros(2, 3), "expected rows of 4 values"),
        (TABLE, {"x": 1}, "expected rows of 4 values"),
        (TextTruth(3), torch.zeros(2, 3), "expected tokens as whole numbers"),
        (TextTruth(3), {"ids": torch.zeros(2, 3).long()}, "under 'input_ids'"),
    ],
)
def test_inputs_of_another_kind_are_refused(truth, inputs, reason):
    with pytest.raises(ConfigError, match=reason):
        truth.samples(inputs)


def test_tokens_cannot_be_inverted():
    with pytest.raises(AuditError, match="no gradient"):
        TextTruth(3).inputs(torch.zeros(1, 3).long())
