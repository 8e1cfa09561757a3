"""Cards of tables and texts have tables where those of images have pictures."""

import pytest

from lightsplit.reports.audits import audit_tables
from lightsplit.reports.cards.sheets import sheet_sections
from lightsplit.reports.groups import group_runs


def entry(name, truth, metrics, **facts):
    figures = {"low": 0.0, "high": 1.0, "worst": 1.0}
    return {
        "attack": name,
        "form": "",
        "options": {},
        "kind": "oracle",
        "threat_model": "a server",
        "truth": truth,
        "client": 0,
        "seed": 0,
        "targets": "t",
        "images": 2,
        "metrics": {key: {"mean": mean, **figures} for key, mean in metrics.items()},
        "sheet": {"file": f"sheet-{name}.csv"},
        **facts,
    }


AGE = {"column": "age", "r2": 0.9, "error": 3.0, "error_of_mean": 12.0}
SEX = {
    "column": "sex",
    "r2": None,
    "accuracy": 0.75,
    "accuracy_of_most_frequent": 0.5,
}
ROWS = [
    entry("linear", "table", {"r2": 0.4}, columns=[SEX]),
    entry("decoder", "table", {"r2": 0.9}, columns=[AGE, SEX]),
]
TEXTS = [entry("decoder", "text", {"token_f1": 0.8, "token_accuracy": 0.7})]


@pytest.fixture
def audited(make_run, runs_in):
    """Return what makes a run with entries of an audit and a sheet."""

    def make(entries):
        make_run("one", audit=entries)
        [run], _ = runs_in()
        (run.path / "images").mkdir(parents=True, exist_ok=True)
        sheet = run.path / "images" / "sheet-decoder.csv"
        sheet.write_text("row,which,age\n1,original,60\n1,guess,58\n")
        return run

    return make


def test_the_strongest_attack_has_its_columns_and_samples_shown(audited):
    columns, samples = sheet_sections(audited(ROWS))
    assert columns.rows == [
        ("age", "0.900", "off by 3", "off by 12"),
        ("sex", "–", "75.0% right", "50.0% right"),
    ]
    assert samples.head == ("row", "which", "age")
    assert samples.rows[1] == ("1", "guess", "58")


def test_texts_have_no_columns(audited):
    [samples] = sheet_sections(audited(TEXTS))
    assert samples.heading == "Samples beside guesses"


def test_a_sheet_that_is_gone_is_left_out(audited):
    run = audited(TEXTS)
    (run.path / "images" / "sheet-decoder.csv").unlink()
    assert sheet_sections(run) == []


def test_each_kind_of_sample_has_a_table_of_its_own(audited):
    tables = audit_tables(group_runs([audited(ROWS + TEXTS)]))
    assert [one.name for one in tables] == [
        "audit-rows",
        "audit-columns",
        "audit-texts",
    ]
    assert len(tables[1].rows) == 2  # the columns of the strongest attack
