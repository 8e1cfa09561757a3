"""The picture of a run that operators see."""

import os
import time
from types import SimpleNamespace

from lightsplit.deployment.status import board as module
from lightsplit.deployment.status.board import Board


def test_a_picture_shows_who_is_there_whose_turn_it_is_and_the_bytes(board):
    alice, bob = board.picture["clients"]
    assert (alice["is_connected"], alice["is_in_turn"]) == (True, True)
    assert (bob["is_connected"], bob["is_in_turn"]) == (False, False)
    assert (alice["up"], alice["down"], alice["other"]) == (100, 50, 7)
    assert board.picture["refusals"] == {"unknown-client": 1}
    assert board.picture["steps"] == 12
    assert board.picture["computing_share"] == 0.25


def test_reported_losses_become_a_curve(board, run):
    run.progress.steps, run.members[1].loss = 20, 1.5
    board.update(run)
    assert board.picture["losses"] == [[12, 0.5], [20, 1.0]]


def test_the_age_of_the_checkpoint_is_that_of_its_file(board, tmp_path):
    assert board.picture["checkpoint_age_seconds"] is None
    latest = tmp_path / "checkpoint" / "latest"
    latest.parent.mkdir()
    latest.write_text("step-1")
    os.utime(latest, (time.time() - 100, time.time() - 100))
    assert 99 < board.picture["checkpoint_age_seconds"] < 160


def test_a_loop_that_stands_still_is_trouble(board, run, monkeypatch):
    assert board.trouble is None
    later = time.monotonic() + 90
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    assert "stood still for 90 seconds" in board.trouble
    board.update(run)
    assert board.trouble is None


def test_the_end_of_a_run_is_in_the_picture(board, run):
    run.finished = SimpleNamespace(reason="schedule")
    run.at_work = set
    board.update(run)
    assert board.picture["finished"] == "schedule"
    assert not any(one["is_in_turn"] for one in board.picture["clients"])


def test_before_the_first_picture_nothing_is_wrong(tmp_path):
    board = Board(tmp_path)
    assert board.trouble is None
    assert "run" not in board.picture
