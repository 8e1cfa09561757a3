"""Cells with attacks that learn: trained, trained once more under attack, resumed."""

from dataclasses import replace

import pytest

from lightsplit.attacks import ATTACKS
from lightsplit.attacks.sdar import SDAR
from lightsplit.attacks.sdar_training import Settings
from lightsplit.audits import AuditOptions, stages
from lightsplit.experiments.settings import to_tables
from lightsplit.results import RunFolder
from lightsplit.sweeps.work import Advance, Ended, Order, run_cell

pytestmark = pytest.mark.slow

SETTINGS = {
    "train_limit": 120,
    "test_limit": 20,
    "epochs": 2,
    "turn_steps": 1,
    "clients": 2,
    "batch_size": 20,
    "cut": "l1",
}
DURING = AuditOptions(
    attacks=("sdar",),
    form="published",
    budget="full",
    images=6,
    auxiliary=40,
    during=True,
    save_every=100,
)


class NarrowSDAR(SDAR):
    """SDAR with small discriminators, and nothing else different."""

    def __init__(self, **known):
        super().__init__(settings=Settings(width=8), **known)


@pytest.fixture(autouse=True)
def _as_often_and_as_fast_as_can_be(monkeypatch):
    monkeypatch.setitem(ATTACKS._entries, "sdar", NarrowSDAR)
    monkeypatch.setattr("lightsplit.sweeps.work.SECONDS_BETWEEN_EVENTS", 0)


@pytest.fixture
def cell(tmp_path):
    """Return what runs a cell and gives back how it ended and what it told."""

    def go(name="cell", audit=DURING, stop_at=None):
        told = []
        order = Order("key", to_tables(SETTINGS), str(tmp_path), name, audit=audit)

        def wants_stop():
            last = told[-1] if told else Advance("key", 0, 0)
            return (last.audit, last.steps) == stop_at

        return run_cell(order, told.append, wants_stop), told

    return go


def entries(path, attack):
    found = RunFolder(path).read_record().get("audit", [])
    kept = [entry for entry in found if entry["attack"] == attack]
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in kept]


def test_an_attack_that_learns_watches_a_second_training(cell, tmp_path):
    ended, told = cell()
    assert ended == Ended("key", "done")
    assert len(entries(tmp_path / "cell", "sdar")) == 1
    assert entries(tmp_path / "cell", "mean-image")
    titles = {event.audit for event in told}
    assert {"", "training", "sdar-published"} <= titles
    assert max(event.steps for event in told if event.audit == "training") == 12


def test_a_stopped_cell_resumes_and_ends_as_an_uninterrupted_one(cell, tmp_path):
    cell("whole")
    ended, _ = cell(stop_at=("training", 7))
    assert ended.outcome == "stopped"
    assert not entries(tmp_path / "cell", "sdar")
    ended, told = cell()
    assert ended.outcome == "done"
    assert min(event.steps for event in told if event.audit == "training") == 8
    whole, stopped = (entries(tmp_path / n, "sdar") for n in ("whole", "cell"))
    assert whole == stopped


def test_the_state_of_another_audit_is_not_resumed(cell, tmp_path):
    cell(stop_at=("training", 7))
    ended, told = cell(audit=replace(DURING, seed=3))
    assert ended.outcome == "done"
    assert min(event.steps for event in told if event.audit == "training") == 1
    assert not (tmp_path / "cell" / "audit-checkpoint").exists()


def test_attacks_in_the_record_do_not_run_again(cell, monkeypatch):
    cell()
    both = replace(DURING, attacks=("linear", "sdar"))
    monkeypatch.setattr(stages, "audit_during", lambda *_, **__: 1 / 0)
    ended, told = cell(audit=both)
    assert ended.outcome == "done"
    assert "linear" in {event.audit for event in told}
    monkeypatch.setattr(stages, "audit", lambda *_, **__: 1 / 0)
    assert cell(audit=both) == (Ended("key", "done"), [])


def test_an_audit_after_training_is_stopped_too(cell, tmp_path):
    after = AuditOptions(attacks=("decoder",), images=6, auxiliary=40)
    ended, told = cell(audit=after, stop_at=("decoder", 3))
    assert ended.outcome == "stopped"
    assert told[-1].audit == "decoder"
    assert not entries(tmp_path / "cell", "decoder")
