"""Two processes never work in one folder."""

import os

import pytest

from lightsplit.errors import RunError
from lightsplit.results.holding import Hold


def test_a_folder_that_is_held_is_refused_until_it_is_given_back(tmp_path):
    with Hold(tmp_path):
        with pytest.raises(RunError, match="another process works in"), Hold(tmp_path):
            pass
        with Hold(tmp_path / "another"):
            pass
    with Hold(tmp_path) as hold:
        hold.take()  # it has it already
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_held_once_it_is_there(tmp_path):
    folder = tmp_path / "new"
    with Hold(folder) as late:
        folder.mkdir()
        late.take()
        with pytest.raises(RunError), Hold(folder):
            pass


def test_a_refused_hold_takes_nothing_from_the_other(tmp_path):
    with Hold(tmp_path):
        for _ in range(2):
            with pytest.raises(RunError), Hold(tmp_path):
                pass


def test_no_folder_is_nothing_to_hold():
    with Hold(None) as hold:
        hold.take()


def test_a_refused_hold_leaves_no_file_open(tmp_path):
    with Hold(tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(RunError), Hold(tmp_path):
            pass
        assert len(os.listdir("/proc/self/fd")) == before
