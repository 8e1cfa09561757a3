from dataclasses import replace

import pytest
import torch

from lightsplit.data import TableForm
from lightsplit.errors import ConfigError, DataError, MissingDataError

FORM = TableForm(
    "ill",
    ("no", "yes"),
    {"age": (50.0, 10.0)},
    {"sex": ("f", "m")},
    optional=("age",),
)


@pytest.fixture
def table(tmp_path):
    """Return what writes a CSV file."""

    def write(*rows, head="id,age,sex,ill"):
        file = tmp_path / "data.csv"
        file.write_text("\n".join([head, *rows]) + "\n")
        return file

    return write


def test_rows_become_numbers(table):
    inputs, labels = FORM.file(table("1,60,f,yes", "2,,m,no")).tensors
    assert FORM.features == ("age", "sex=f", "sex=m", "age is missing")
    assert inputs.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert labels.tolist() == [1, 0]


def test_a_label_can_be_a_number(table):
    form = TableForm("age", numbers={"id": (0.0, 1.0)})
    _, labels = form.file(table("1,60.5,f,yes")).tensors
    assert labels.dtype == torch.float32
    assert labels.tolist() == [60.5]


@pytest.mark.parametrize("missing", [[60, None], [60.0, float("nan")]])
def test_parquet_gives_the_same_as_csv(table, tmp_path, missing):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"age": missing, "sex": ["f", "m"], "ill": ["yes", "no"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    here = FORM.file(tmp_path / "data.parquet").tensors
    there = FORM.file(table("1,60,f,yes", "2,,m,no")).tensors
    assert all(map(torch.equal, here, there))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,old,f,yes", r"line 2: expected a number for age, got 'old'"),
        ("1,inf,f,yes", r"expected a number for age"),
        ("1,60,x,yes", r"line 2: sex is 'x'.*categories, f, m"),
        ("1,60,,yes", r"sex is missing"),
        ("1,60,f,maybe", r"the class 'maybe' is not one of the task's classes"),
        ("1,60", r"line 2: the row is too short, it has no 'sex'"),
        ("1,60,f,yes,no", r"line 2: the row has more values than the file has columns"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_line(table, row, reason):
    with pytest.raises(DataError, match=reason):
        FORM.file(table(row))


def test_what_stands_for_a_missing_value_is_declared(table):
    file = table("1,NA,f,yes")
    with pytest.raises(DataError, match="expected a number for age, got 'NA'"):
        FORM.file(file)
    declared, empty = replace(FORM, missing=("NA",)), table("1,,f,yes")
    assert declared.file(file).tensors[0].equal(FORM.file(empty).tensors[0])
    assert declared.terms()["missing"] == ["NA"]


def test_rows_without_labels_can_be_read(table):
    inputs, _ = FORM.file(table("1,60,f,yes", "2,,m,no")).tensors
    new = FORM.unlabelled(table("1,60,f", "2,,m", head="id,age,sex"))
    assert new.equal(inputs)


def test_a_column_that_comes_twice_is_refused(table):
    with pytest.raises(DataError, match="more than one column 'age'"):
        FORM.file(table("60,70,f,yes", head="age,age,sex,ill"))


def test_a_missing_column_is_named(table):
    with pytest.raises(DataError, match=r"no column 'sex'; the columns are age, ill"):
        FORM.file(table("60,yes", head="age,ill"))


def test_files_that_cannot_be_read_are_refused(table, tmp_path):
    with pytest.raises(DataError, match="at least one row"):
        FORM.file(table())
    with pytest.raises(MissingDataError, match="there is no file"):
        FORM.file(tmp_path / "nothing.csv")
    (tmp_path / "bytes.csv").write_bytes(b"age,sex,ill\n\xff\xfe,f,no\n")
    with pytest.raises(DataError, match="not a CSV file in UTF-8"):
        FORM.file(tmp_path / "bytes.csv")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a Parquet file"):
        FORM.file(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"numbers": {"a": (0.0, 0.0)}},
        {"numbers": {"a": (0, 1)}, "optional": ("b",)},
    ],
)
def test_impossible_forms_are_refused(options):
    with pytest.raises(ConfigError):
        TableForm("y", ("a", "b"), **options)
