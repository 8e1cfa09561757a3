"""The rules that a run in one process and a networked run share."""

from types import SimpleNamespace

import pytest

from lightsplit.errors import RunError
from lightsplit.runs.evaluation import Evaluation
from lightsplit.runs.guard import Ruling
from lightsplit.runs.run_state import RunState
from lightsplit.runs.schedule import Schedule


class ScriptedGuard:
    """A guard that rules as it is told and notes what it is asked."""

    every = 1

    def __init__(self, ruling=Ruling(), *, is_stopping=False):  # noqa: B008
        self.is_stopping = is_stopping
        self.begun = []
        self.windows = []
        self._ruling = ruling

    def begin(self, client, capture):
        self.begun.append((client, capture()))

    def end(self, client, *, ends_window, capture):
        self.windows.append((client, ends_window, capture()))
        return self._ruling


VERDICT = SimpleNamespace(
    detector="d",
    clients=(0, 1),
    scores=(0.0, 1.0),
    flagged=(1,),
    threshold=0.5,
    false_alarm_rate=None,
)


def make_state(**options):
    state = RunState(2, **options)
    state.schedule = Schedule([2, 2], turn_steps=1)
    return state


def take_turns(state, count):
    """Count the first turns of the schedule and return the last of them."""
    turns = list(state.schedule.turns())[:count]
    for turn in turns:
        state.progress.note_turn(turn.client, turn.steps, samples=4)
    return turns[-1]


def evaluation(accuracy):
    figures = {"loss": 1.0, "accuracy": accuracy}
    return Evaluation(figures, (figures,))


def test_the_schedule_is_not_known_before_every_client_has_joined():
    with pytest.raises(RunError, match="wait for all of them"):
        _ = RunState(2).schedule


def test_a_run_stops_at_the_end_of_its_schedule():
    state = make_state()
    take_turns(state, 3)
    assert state.stop_reason is None
    state.progress.steps += 1
    assert state.stop_reason == "schedule"


def test_a_run_stops_when_patience_runs_out():
    state = make_state(patience=2)
    turn = take_turns(state, 2)
    for accuracy in (0.5, 0.5):
        state.remember(turn, evaluation(accuracy), {"total": 8})
    assert not state.is_out_of_patience
    state.remember(turn, evaluation(0.4), {"total": 8})
    assert state.stop_reason == "patience"


def test_a_detector_is_named_before_patience_and_schedule():
    state = make_state(patience=1, guard=ScriptedGuard(is_stopping=True))
    turn = take_turns(state, 4)
    for accuracy in (0.5, 0.0):
        state.remember(turn, evaluation(accuracy), {"total": 8})
    assert state.is_out_of_patience
    assert state.stop_reason == "detector"


@pytest.mark.parametrize(("every", "due"), [(0, [4]), (1, [2, 4])])
def test_evaluations_follow_the_schedule(every, due):
    found = [
        count
        for count in range(1, 5)
        if (state := make_state(eval_every=every)).is_evaluation_due(
            take_turns(state, count)
        )
    ]
    assert found == due


def test_an_evaluation_is_remembered_with_the_bytes_so_far():
    state = make_state()
    state.remember(take_turns(state, 2), evaluation(0.5), {"total": 12})
    line = state.progress.history[-1]
    assert (line["epoch"], line["round"], line["step"]) == (1, 1, 2)
    assert (line["test_accuracy"], line["bytes"]) == (0.5, 12)


def test_without_a_guard_nothing_is_captured_or_undone():
    state = make_state()
    state.begin_turn(0, pytest.fail)
    turn = take_turns(state, 1)
    assert state.judge(turn, pytest.fail, pytest.fail) == Ruling()


def test_the_guard_sees_the_state_before_and_after_a_turn():
    guard = ScriptedGuard()
    state = make_state(guard=guard)
    state.begin_turn(0, lambda: "before")
    state.judge(take_turns(state, 1), lambda: "after", pytest.fail)
    assert (guard.begun, guard.windows) == ([(0, "before")], [(0, False, "after")])
    assert state.progress.undone_turns == []


def test_a_turn_that_the_guard_rejects_is_undone_and_counted():
    guard = ScriptedGuard(Ruling(VERDICT, {"w": 1}))
    state = make_state(guard=guard)
    restored = []
    ruling = state.judge(take_turns(state, 2), dict, restored.append)
    assert (ruling.restore, restored) == ({"w": 1}, [{"w": 1}])
    assert state.progress.undone_turns == [0, 1]
    assert guard.windows[-1][:2] == (1, True)  # one round is one window
    assert [line["round"] for line in state.progress.verdicts] == [1]
