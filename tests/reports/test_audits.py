"""Tables of audits' results."""

import pytest

from lightsplit.reports import make_report

pytestmark = pytest.mark.slow


def rows_of(report, name):
    [table] = [table for table in report.tables if table.name == name]
    return [
        dict(zip(table.columns, (value.text for value in row), strict=True))
        for row in table.rows
    ]


def test_labels_have_a_row_for_each_message(audited):
    rows = [row for row in rows_of(audited, "labels") if row["method"] == "raw"]
    reached = {row["message"]: (row["reached"], row["chance"]) for row in rows}
    assert reached == {"code": ("0.4", "0.1"), "output gradient": ("0.9", "0.1")}


def test_seeds_of_an_attack_are_one_row(audited):
    rows = rows_of(audited, "audit")
    decoders = [row for row in rows if row["attack"].startswith("decoder")]
    assert sorted(row["method"] for row in decoders) == ["lightsplit-f 8x", "raw"]


def test_options_of_an_attack_are_in_its_label(make_run, runs_in, attack):
    other = {**attack("decoder", 0.7), "options": {"blocks": 4}}
    make_run("raw", audit=[attack("decoder", 0.5), other])
    rows = rows_of(make_report(*runs_in()), "audit")
    reached = {row["attack"]: row["ssim"] for row in rows}
    assert reached == {
        "decoder adaptive": "0.5",
        "decoder:blocks=4 adaptive": "0.7",
    }
