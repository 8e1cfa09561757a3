"""Rows of a table against their originals."""

import pytest
import torch
from sklearn.metrics import r2_score

from lightsplit.errors import ConfigError
from lightsplit.metrics import column_r2, evaluate


@pytest.fixture
def rows():
    return torch.randn(50, 6) * torch.tensor([1.0, 2, 1, 1, 0.5, 1]) + 3


def test_the_mean_of_r2_is_that_of_scikit_learn(rows):
    guesses = rows + torch.randn_like(rows)
    found = evaluate(guesses, rows, kind="table")["r2"].mean()
    wanted = r2_score(rows, guesses, multioutput="variance_weighted")
    assert float(found) == pytest.approx(wanted, abs=1e-5)
    one = column_r2(guesses[:, 2:3], rows[:, 2:3])
    assert one == pytest.approx(r2_score(rows[:, 2], guesses[:, 2]), abs=1e-5)


def test_a_copy_is_perfect_and_the_mean_explains_nothing(rows):
    copy = evaluate(rows, rows, kind="table")
    assert set(copy) == {"r2", "row_mse", "reidentification"}
    assert copy["r2"].eq(1).all()
    assert copy["reidentification"].eq(1).all()
    mean = evaluate(rows.mean(0).expand_as(rows), rows, kind="table")
    assert float(mean["r2"].mean()) == pytest.approx(0, abs=1e-5)
    assert float(mean["reidentification"].mean()) <= 0.1


def test_a_column_that_never_changes_has_no_r2():
    assert column_r2(torch.randn(5, 1), torch.ones(5, 1)) is None


@pytest.mark.parametrize(
    "guesses", [torch.zeros(50, 5), torch.full((50, 6), torch.nan)]
)
def test_rows_that_cannot_be_scored_are_refused(rows, guesses):
    with pytest.raises(ConfigError, match="expected"):
        evaluate(guesses, rows, kind="table")
