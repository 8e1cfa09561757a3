"""Honest runs in a report: how often a detector flagged somebody."""

import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.false_alarms import false_alarm_table, wilson_interval


def seen(flagged):
    return {
        "detector": "cosine-code",
        "threshold": 6.0,
        "false_alarm_rate": 0.05,
        "scores": [1.0, 2.0, 7.0 if flagged else 3.0],
        "flagged": [2] if flagged else [],
        "f1": None,
    }


@pytest.fixture
def table(make_run, runs_in):
    """Return what tells of ten honest runs, some of them with an alarm."""

    def make(alarms, backdoor=None, runs=10):
        for seed in range(runs):
            figures = {"detection": seen(seed < alarms), "backdoor": backdoor}
            settings = {"seed": seed, "clients": 3, "detector": "cosine-code"}
            make_run(f"run-{seed}", figures=figures, **settings)
        return false_alarm_table(group_runs(runs_in()[0]))

    return make


def test_the_measured_rate_stands_beside_the_stated_one(table):
    (line,) = table(alarms=1).lines
    assert (line["runs"], line["alarms"]) == (10, 1)
    assert line["stated"] == pytest.approx(0.05)
    assert line["measured"] == 0.1
    assert line["low"] < line["stated"] < line["measured"] < line["high"]


@pytest.mark.parametrize(("alarms", "tone"), [(0, "good"), (5, "bad")])
def test_a_rate_outside_its_interval_is_marked(table, alarms, tone):
    (row,) = table(alarms=alarms).rows
    assert row[-1].tone == tone


def test_runs_with_a_malicious_client_are_left_out(table):
    assert table(alarms=1, backdoor={"malicious_clients": [1]}) is None


@pytest.mark.parametrize(("count", "total"), [(0, 5), (5, 5), (3, 40)])
def test_the_interval_holds_the_share_and_stays_within_0_and_1(count, total):
    low, high = wilson_interval(count, total)
    assert -1e-12 <= low <= count / total <= high <= 1 + 1e-12
