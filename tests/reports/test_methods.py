"""One table with every method: what it reaches, leaks, sends and costs."""

import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.methods import method_table


@pytest.fixture
def table(make_run, runs_in, attack):
    cheap = {"client_cost": {"parameters": 7, "flops": 2_500_000}}
    make_run("one", "raw", audit=[attack(ssim=0.9)], figures=cheap)
    make_run("two", "fixed-8", audit=[attack(ssim=0.4)])
    return method_table(group_runs(runs_in()[0]))


def column(table, name):
    return [row[table.columns.index(name)] for row in table.rows]


def test_every_method_has_its_leakage_bytes_and_cost(table):
    assert [cell.sort for cell in column(table, "worst SSIM")] == [0.9, 0.4]
    raw, fixed = (cell.sort for cell in column(table, "code / sample"))
    assert raw == 8 * fixed
    assert column(table, "client MFLOP")[0].text == "2.50"
    assert column(table, "client parameters")[0].text == "7"


def test_ours_are_named(table):
    assert [cell.below for cell in column(table, "method")] == ["", "ours"]
    assert [line["is_ours"] for line in table.lines] == [False, True]


def test_every_column_can_be_sorted(table):
    for place in range(len(table.columns)):
        kinds = {isinstance(row[place].key, str) for row in table.rows}
        assert len(kinds) == 1, table.columns[place]


def test_without_an_audit_there_is_no_table(make_run, runs_in):
    make_run("one", "raw")
    assert method_table(group_runs(runs_in()[0])) is None
