"""A task says what an audit looks for: by itself, by its form, or by its example."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from lightsplit import Task
from lightsplit.data import ArrayForm, ImageForm, MaskForm, TableForm, TextForm
from lightsplit.errors import ConfigError
from lightsplit.truths import ImageTruth, TableTruth, TextTruth


def task(inputs, **facts):
    return Task(model=nn.Identity, example=lambda: (inputs, torch.zeros(2)), **facts)


TOKENS = torch.zeros(2, 7).long()


@pytest.mark.parametrize(
    ("inputs", "truth"),
    [
        (torch.zeros(2, 3, 5, 6), ImageTruth((3, 5, 6))),
        (torch.zeros(2, 4), TableTruth.numbered(4)),
        (TOKENS, TextTruth(7)),
        ({"input_ids": TOKENS}, TextTruth(7)),
    ],
)
def test_an_example_shows_the_kind_of_truth(inputs, truth):
    assert task(inputs).find_truth() == truth


@pytest.mark.parametrize("inputs", [{"x": torch.zeros(2)}, torch.zeros(2, 3, 4)])
def test_other_inputs_need_a_truth_of_their_own(inputs):
    with pytest.raises(ConfigError, match="give the task a truth"):
        task(inputs).find_truth()
    assert task(inputs, truth=TextTruth(3)).find_truth() == TextTruth(3)


def test_forms_know_sizes_and_scales():
    image = ImageTruth((1, 8, 9), 0.5, 0.2)
    assert ImageForm(("a",), (8, 9), mean=0.5, std=0.2).truth() == image
    assert MaskForm((8, 9), mean=0.5, std=0.2).truth() == image
    assert ArrayForm((1, 8, 9), mean=0.5, std=0.2).truth() == image
    assert ArrayForm((4,)).truth() == TableTruth.numbered(4)
    assert ArrayForm((2, 3, 4, 5)).truth() is None


def test_a_table_form_names_its_columns():
    form = TableForm(
        "y", ("n", "p"), {"age": (50.0, 9.0)}, {"sex": ("f", "m")}, ("age",)
    )
    truth = form.truth()
    assert [one.name for one in truth.columns] == ["age", "sex", "age is missing"]
    assert truth.shape == (form.width,)
    assert truth.columns[0].std == 9.0


def test_a_text_form_makes_texts_legible_if_its_tokenizer_can():
    class Tokenizer:
        def __call__(self, text):
            return {"input_ids": [len(text)]}

        def decode(self, tokens):
            return "x" * len(tokens)

    form = TextForm(("a", "b"), Tokenizer(), max_tokens=5, padding=9)
    assert form.truth().text(torch.tensor([1, 2, -1])) == "xx"
    assert form.truth().padding == 9
    assert replace(form, tokenize=lambda text: {}).truth().read is None
