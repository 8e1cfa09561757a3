import os

import pytest

from lightsplit.errors import ContractError, RunError
from lightsplit.runs import checkpoint_folder

FILES = {"server.safetensors": b"weights"}


def write(folder, steps):
    content = {"contract": "abc", "steps": steps}
    return checkpoint_folder.write(folder, steps, FILES, content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_one_is_read(tmp_path):
    for steps in (1, 2):
        write(tmp_path, steps)
    newest, content = checkpoint_folder.read(tmp_path, "abc")
    assert (newest.name, content["steps"]) == ("step-00000002", 2)
    with pytest.raises(ContractError, match="of another run"):
        checkpoint_folder.read(tmp_path, "xyz")


def test_two_checkpoints_are_kept_and_one_can_go_back_to_the_older(tmp_path):
    for steps in (1, 2, 3):
        write(tmp_path, steps)
    assert names(tmp_path) == ["latest", "step-00000002", "step-00000003"]
    (tmp_path / "latest").write_text("step-00000002")
    assert checkpoint_folder.read(tmp_path, "abc")[1]["steps"] == 2
    write(tmp_path, 3)
    assert names(tmp_path) == ["latest", "step-00000002", "step-00000003"]


def test_drafts_that_a_killed_process_left_are_removed(tmp_path):
    write(tmp_path, 1)
    (tmp_path / "step-00000009.tmp").mkdir()
    (tmp_path / "step-00000009.tmp" / "server.safetensors").write_bytes(b"half")
    (tmp_path / "latest.0badcafe.tmp").write_text("step-0")
    write(tmp_path, 2)
    assert names(tmp_path) == ["latest", "step-00000001", "step-00000002"]


def test_a_failed_write_leaves_the_one_before(tmp_path, monkeypatch):
    write(tmp_path, 1)

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, 2)
    assert checkpoint_folder.read(tmp_path, "abc")[1]["steps"] == 1


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path, monkeypatch):
    write(tmp_path, 1)

    def exhausted(*_arguments, **_options):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("pathlib.Path.read_text", exhausted)
    with pytest.raises(RunError, match="cannot be read: Too many open files"):
        checkpoint_folder.read(tmp_path, "abc")
