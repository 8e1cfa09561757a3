"""A client's log: every turn, and a warning when the server goes back."""

import json
import stat

import pytest

from lightsplit.deployment.client_log import FILE_NAME, ClientLog
from lightsplit.errors import RollbackError, RunError


def events(folder):
    lines = (folder / FILE_NAME).read_text().splitlines()
    return [(one["event"], one["turn"]) for one in map(json.loads, lines)]


def test_every_turn_has_its_number_run_and_time(tmp_path):
    log = ClientLog(tmp_path)
    assert log.note("granted", "r", 0, 0) is None
    assert log.note("done", "r", 0, 2) is None
    first, _ = (tmp_path / FILE_NAME).read_text().splitlines()
    line = json.loads(first)
    assert {
        "event": "granted",
        "run": "r",
        "turn": 0,
        "steps": 0,
    }.items() <= line.items()
    assert line["time"].endswith("+00:00")
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_a_log_is_only_added_to(tmp_path):
    ClientLog(tmp_path).note("granted", "r", 0, 0)
    before = (tmp_path / FILE_NAME).read_bytes()
    ClientLog(tmp_path).note("granted", "r", 3, 2)
    assert (tmp_path / FILE_NAME).read_bytes().startswith(before)
    assert events(tmp_path) == [("granted", 0), ("granted", 3)]


@pytest.mark.parametrize(
    ("turn", "steps"), [(4, 9), (5, 8)], ids=["lower turn", "fewer steps"]
)
def test_a_server_that_goes_back_is_a_warning_once(tmp_path, turn, steps):
    ClientLog(tmp_path).note("done", "r", 5, 9)
    log = ClientLog(tmp_path)  # the client was started again in between
    warning = log.note("granted", "r", turn, steps)
    assert "from turn 5 with 9 steps" in warning
    assert f"to turn {turn} with {steps}" in warning
    assert events(tmp_path)[1:] == [("went back", turn), ("granted", turn)]
    assert log.note("done", "r", turn, steps + 1) is None


@pytest.mark.parametrize("steps", [9, 11])
def test_the_same_turn_again_is_no_warning(tmp_path, steps):
    log = ClientLog(tmp_path)
    log.note("done", "r", 5, 9)
    assert log.note("granted", "r", 5, steps) is None


def test_the_end_says_no_steps_and_is_compared_by_its_turn(tmp_path):
    log = ClientLog(tmp_path)
    log.note("done", "r", 5, 9)
    assert log.note("finished", "r", 5) is None
    assert "went back" in log.note("finished", "r", 4)


def test_another_run_in_the_same_folder_is_a_warning(tmp_path):
    ClientLog(tmp_path).note("done", "old", 5, 9)
    warning = ClientLog(tmp_path).note("granted", "new", 0, 0)
    assert "began another run, new, at turn 0" in warning
    assert "knows old" in warning


def test_a_client_that_does_not_go_along_refuses_every_time(tmp_path):
    ClientLog(tmp_path).note("done", "r", 5, 9)
    for _ in range(2):
        log = ClientLog(tmp_path, allows_rollback=False)
        with pytest.raises(RollbackError, match="--no-rollback"):
            log.note("granted", "r", 3, 4)
    assert events(tmp_path)[1:] == [("refused", 3), ("refused", 3)]
    assert ClientLog(tmp_path, allows_rollback=False).note("granted", "r", 6, 9) is None


def test_a_line_that_a_crash_cut_short_is_passed_over(tmp_path):
    ClientLog(tmp_path).note("done", "r", 5, 9)
    with (tmp_path / FILE_NAME).open("a") as file:
        file.write('{"time": "2')
    log = ClientLog(tmp_path)
    assert "went back" in log.note("granted", "r", 4, 9)
    assert "went back" in ClientLog(tmp_path).note("granted", "r", 3, 9)


def test_a_damaged_line_is_one_clear_sentence(tmp_path):
    (tmp_path / FILE_NAME).write_text("no log\n")
    with pytest.raises(RunError, match=r"line 1 of .*is not a line of a client's log"):
        ClientLog(tmp_path)


def test_without_a_folder_the_log_is_in_memory():
    log = ClientLog(None)
    log.note("done", "r", 5, 9)
    assert "went back" in log.note("granted", "r", 4, 9)


def test_it_knows_the_steps_of_each_run(tmp_path):
    log = ClientLog(tmp_path)
    assert log.steps_in("r") is None
    log.note("granted", "r", 0, 0)
    assert log.steps_in("r") is None  # it cannot tell which sides are of which run
    log.note("done", "r", 0, 4)
    log.note("granted", "s", 0, 0)
    assert (log.steps_in("r"), log.steps_in("s"), log.steps_in("t")) == (4, 0, 0)


def test_in_rounds_a_step_that_came_too_late_is_no_step_back(tmp_path):
    """The next round then begins with it again, whatever this owner had done."""
    log = ClientLog(tmp_path, in_rounds=True)
    log.note("done", "r", 5, 9)
    assert log.note("granted", "r", 6, 8) is None
    assert "from turn 6 with 8 steps" in log.note("granted", "r", 5, 8)
    assert "to turn 5 with 7" in log.note("granted", "r", 5, 7)
