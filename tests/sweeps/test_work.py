"""One cell in this process: trained, attacked if asked for, never twice."""

import pytest

from lightsplit.audits import AuditOptions
from lightsplit.experiments.settings import to_tables
from lightsplit.results import RunFolder
from lightsplit.sweeps.work import ERROR_FILE, Ended, Order, run_cell

pytestmark = pytest.mark.slow

SETTINGS = {
    "train_limit": 120,
    "test_limit": 20,
    "epochs": 1,
    "clients": 2,
    "cut": "l1",
}
AUDIT = AuditOptions(attacks=("linear",), images=6, auxiliary=40)


@pytest.fixture
def order(tmp_path):
    def make(**more):
        settings = {**SETTINGS, **more.pop("settings", {})}
        return Order("key", to_tables(settings), str(tmp_path), "cell", **more)

    return make


def go(order):
    return run_cell(order, lambda _event: None, lambda: False)


def attacks(path):
    return [e["attack"] for e in RunFolder(path / "cell").read_record()["audit"]]


def test_a_cell_is_attacked_after_it_was_trained(order, tmp_path):
    assert go(order(audit=AUDIT)) == Ended("key", "done")
    assert attacks(tmp_path)[-1] == "linear"


def test_a_trained_cell_is_attacked_without_being_trained_again(order, tmp_path):
    go(order())
    before = RunFolder(tmp_path / "cell").read_record()
    go(order(audit=AUDIT))
    after = RunFolder(tmp_path / "cell").read_record()
    assert after["seconds"] == before["seconds"]
    assert "linear" in attacks(tmp_path)


def test_an_attack_that_fails_leaves_the_trained_cell(order, tmp_path):
    broken = AuditOptions(attacks=("linear",), images=6, auxiliary=40, client=7)
    ended = go(order(audit=broken))
    assert ended.outcome == "failed"
    assert "between 0 and 1, got 7" in (tmp_path / "cell" / ERROR_FILE).read_text()
    assert RunFolder(tmp_path / "cell").is_finished


def test_a_fault_of_the_settings_is_told_and_not_raised(order):
    ended = go(order(settings={"clients": 10_000}))
    assert ended.outcome == "failed"
    assert ended.reason
