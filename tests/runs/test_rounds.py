import json

import pytest

from lightsplit.errors import RunError
from lightsplit.runs.rounds import (
    Attendance,
    Participation,
    read_participation,
    rounds,
)
from lightsplit.runs.schedule import Schedule

PARTLY = Attendance((0, 1, 2), (0, 2), (0, 2), (2,))


def test_a_round_is_a_batch_of_every_owner_and_can_be_entered_anywhere():
    schedule = Schedule([2, 3, 1], turn_steps=1, epochs=2)
    every = list(rounds(schedule))
    assert [one.number for one in every] == [0, 1, 2, 3]
    assert [one.place for one in every] == [0, 3, 6, 9]
    assert [one.turn.ends_epoch for one in every] == [False, True, False, True]
    assert all(one.turn.ends_round and one.steps == 3 for one in every)
    assert list(rounds(schedule, 2)) == every[2:]
    assert [one.turn for one in every] == list(schedule.turns())[2::3]


def test_what_is_written_is_read(tmp_path):
    told = [Attendance.full([2, 0]), PARTLY, Attendance.full([1])]
    log = Participation(tmp_path / "participation.jsonl")
    for number, one in enumerate(told):
        log.add(number, one)
    assert read_participation(tmp_path / "participation.jsonl", 3) == told
    log.go_back(1)
    assert read_participation(tmp_path / "participation.jsonl", 3) == told[:1]


@pytest.mark.parametrize(
    "line",
    [
        "nothing",
        '{"round": 1, "codes": [0]}',
        '{"round": 0}',
        '{"round": 0, "codes": [3]}',
        '{"round": 0, "codes": [0], "gradients": [1]}',
    ],
)
def test_a_line_that_cannot_be_is_refused(line, tmp_path):
    file = tmp_path / "participation.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(RunError, match="line 1 of"):
        read_participation(file, 3)


def test_a_stage_that_nobody_left_at_is_not_written():
    assert json.loads(PARTLY.to_line(7)) == {
        "round": 7,
        "codes": [0, 1, 2],
        "gradients": [0, 2],
        "done": [2],
    }


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(RunError, match="no file"):
        read_participation(tmp_path / "none", 3)
