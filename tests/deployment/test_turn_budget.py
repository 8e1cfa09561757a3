import pytest

from lightsplit.deployment import turn_budget
from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.turn_budget import TurnBudget
from lightsplit.runs.schedule import Turn


def assignment(steps=5):
    turn = Turn(0, 0, 0, steps, ends_round=False, ends_epoch=False)
    return Assignment(turn, 0, 0, steps, evaluate=False)


@pytest.fixture
def clock(monkeypatch):
    """Return what moves the time on."""
    now = [100.0]
    monkeypatch.setattr(turn_budget.time, "monotonic", lambda: now[0])

    def move(seconds):
        now[0] += seconds

    return move


def test_the_budget_grows_with_the_steps_unless_it_is_fixed():
    assert TurnBudget(60).seconds(5) == 900
    assert TurnBudget(60).seconds(0) == 600
    assert TurnBudget(60, 30).seconds(5) == 30


def test_a_turn_that_goes_on_uses_its_budget_up(clock):
    budget, turn = TurnBudget(60), assignment()
    assert not budget.is_used_up(turn, 30)
    clock(30)
    assert not budget.is_used_up(turn, 30)
    clock(1)
    assert budget.is_used_up(turn, 30)


def test_another_turn_has_a_budget_of_its_own(clock):
    budget = TurnBudget(60)
    budget.is_used_up(assignment(), 30)
    clock(31)
    assert not budget.is_used_up(assignment(), 30)
    clock(31)
    assert not budget.is_used_up(None, 30)
