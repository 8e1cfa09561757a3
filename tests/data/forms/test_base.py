import json

import pytest
import torch
from torch.utils.data import TensorDataset

from lightsplit.data import ImageForm, TableForm, TextForm, hold_out
from lightsplit.errors import ConfigError

SAMPLES = TensorDataset(torch.arange(10), torch.arange(10))


def test_terms_are_plain_values():
    form = TableForm("y", ("a", "b"), {"x": (0.0, 1.0)}, {"sex": ("f", "m")})
    assert json.loads(json.dumps(form.terms())) == form.terms()
    assert form.terms()["categories"] == {"sex": ["f", "m"]}


def test_terms_differ_where_forms_differ():
    assert (
        ImageForm(("a", "b"), (8, 8)).terms() != ImageForm(("b", "a"), (8, 8)).terms()
    )


def test_a_tokenizer_is_not_a_term():
    assert "tokenize" not in TextForm(("a",), dict, max_tokens=4).terms()


def test_held_out_samples_are_not_trained_on():
    train, test = hold_out(SAMPLES, 0.3)
    rows = [int(part[row][0]) for part in (train, test) for row in range(len(part))]
    assert (len(train), len(test)) == (7, 3)
    assert sorted(rows) == list(range(10))


def test_the_same_seed_holds_out_the_same_samples():
    first, again, other = (hold_out(SAMPLES, 0.3, seed=seed)[1] for seed in (1, 1, 2))
    assert first.indices == again.indices != other.indices


@pytest.mark.parametrize("share", [0, 0.01, 1])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ConfigError, match="leaves nothing"):
        hold_out(SAMPLES, share)
