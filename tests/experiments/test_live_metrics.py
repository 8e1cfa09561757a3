"""Evaluations are on the disk as soon as they are known."""

import json

from lightsplit.experiments.live_metrics import LiveMetrics
from lightsplit.results import RunFolder


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
