"""Evaluations are on the disk as soon as they are known."""

import json

import pytest

from lightsplit import ByteMeter, Callback, RunStart
from lightsplit.deployment.join_options import TurnFigures
from lightsplit.experiments.live_metrics import ClientMetrics, LiveMetrics
from lightsplit.results import RunFolder
from lightsplit.runs import Callbacks


def lines(folder):
    return [json.loads(one) for one in folder.metrics_file.read_text().splitlines()]


def test_new_lines_are_added_once(tmp_path):
    folder, history = RunFolder(tmp_path), []
    metrics = LiveMetrics(folder)
    for step in range(3):
        metrics.update(history)
        assert lines(folder) == history
        history.append({"step": step})
    metrics.update(history)
    metrics.update(history)
    assert lines(folder) == history


def test_a_resumed_server_forgets_what_it_lost(tmp_path):
    folder = RunFolder(tmp_path)
    LiveMetrics(folder).update([{"step": 1}, {"step": 2}])
    LiveMetrics(folder).update([{"step": 1}])
    assert lines(folder) == [{"step": 1}]


class Told(Callback):
    def __init__(self):
        self.lines = []

    def log(self, line):
        self.lines.append(line)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def callbacks(told):
    found = Callbacks([told])
    found.start(RunStart("join", "alice", None, {}))
    return found


def test_callbacks_get_every_line_once(tmp_path, told, callbacks):
    metrics = LiveMetrics(RunFolder(tmp_path), callbacks)
    metrics.update([{"step": 1}])
    metrics.update([{"step": 1}])
    metrics.update([{"step": 1}, {"step": 2}])
    assert told.lines == [{"step": 1}, {"step": 2}]


def test_a_history_that_went_back_is_written_anew(tmp_path, told, callbacks):
    folder = RunFolder(tmp_path)
    metrics = LiveMetrics(folder, callbacks)
    metrics.update([{"step": 1}, {"step": 2}, {"step": 3}])
    metrics.update([{"step": 1}, {"step": 4}])
    assert lines(folder) == [{"step": 1}, {"step": 4}]
    assert told.lines[3:] == [{"step": 4}]


def turn(number, loss=0.5, **test):
    return TurnFigures(number, 4 * number, loss, test, {"wcc": 0.1})


def test_a_client_has_a_line_for_every_turn(tmp_path, told, callbacks):
    metrics = ClientMetrics(tmp_path, callbacks, ByteMeter())
    metrics.add(turn(0))
    metrics.add(turn(0, loss=None, accuracy=0.75))  # evaluated in the same turn
    metrics.add(turn(3))
    _, first, second = lines(RunFolder(tmp_path))
    assert first["test_accuracy"] == 0.75
    assert "train_loss" not in first
    assert second == {
        "turn": 3,
        "step": 12,
        "train_loss": 0.5,
        "objectives": {"wcc": 0.1},
        "bytes": 0,
    }
    assert told.lines[1:] == [first, second]


def test_a_turn_that_is_repeated_replaces_what_came_after(tmp_path, told, callbacks):
    before = ClientMetrics(tmp_path, Callbacks(), ByteMeter())
    for number in range(4):
        before.add(turn(number))
    with RunFolder(tmp_path).metrics_file.open("a") as file:
        file.write('{"turn": 4, "st')  # killed while writing
    ClientMetrics(tmp_path, callbacks, ByteMeter()).add(turn(2, loss=0.25))
    found = lines(RunFolder(tmp_path))
    assert [(one["turn"], one["train_loss"]) for one in found] == [
        (0, 0.5),
        (1, 0.5),
        (2, 0.25),
    ]
    assert told.lines == found  # a new process tells all of them


def test_a_client_without_a_folder_tells_its_callbacks_alone(told, callbacks):
    ClientMetrics(None, callbacks, ByteMeter()).add(turn(0))
    assert [line["turn"] for line in told.lines] == [0]
