import pytest

from lightsplit.cli.sweep_progress import SweepBars
from lightsplit.experiments import from_settings
from lightsplit.sweeps import Advance, Cell, Estimate, SweepState

CELL = Cell(from_settings({}))
COST = Estimate(steps=100, bytes=1, training_seconds=10, audit_seconds=90)


@pytest.fixture
def bars():
    return SweepBars({CELL.key: COST})


def state(*, steps, audit=""):
    advance = Advance(CELL.key, steps, 100, best=0.5, audit=audit)
    return SweepState({CELL.key: CELL}, running={CELL.key: advance})


def shown(bars, now):
    bars.show(now)
    task = bars._bar.tasks[-1]
    return task.description.strip(), task.fields["note"]


def test_a_cell_in_training_is_shown_with_its_best_accuracy(bars):
    assert shown(bars, state(steps=3)) == (CELL.label, "best accuracy 50.00%")


def test_a_cell_under_attack_is_shown_with_the_current_attack(bars):
    title = f"{CELL.label}, audit: sdar-published"
    assert shown(bars, state(steps=3, audit="sdar-published")) == (title, "3%")


@pytest.mark.parametrize(
    ("audit", "steps", "seconds_left"),
    [("", 50, 95 * 12), ("training", 50, 45 * 60 / 55), ("decoder", 50, 0)],
)
def test_the_time_left_has_the_audit_in_it(
    bars, monkeypatch, audit, steps, seconds_left
):
    monkeypatch.setattr("time.monotonic", lambda: bars._began + 60)
    hours, minutes = divmod(round(seconds_left / 60), 60)
    left = bars._time_left(state(steps=steps, audit=audit))
    assert left == f"about {hours} h {minutes:02d} min left"
