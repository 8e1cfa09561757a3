import os
import stat

import pytest

from lightsplit.results import atomic


def fail(*_):
    raise OSError("no space left")


def test_a_file_holds_the_written_content(tmp_path):
    atomic.write_text(tmp_path / "new" / "file", "λ = 1\n")
    assert (tmp_path / "new" / "file").read_text(encoding="utf-8") == "λ = 1\n"


def test_writing_again_replaces_the_whole_file(tmp_path):
    atomic.write_bytes(tmp_path / "file", b"a long first content")
    atomic.write_bytes(tmp_path / "file", b"short")
    assert (tmp_path / "file").read_bytes() == b"short"


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, broken
):
    atomic.write_bytes(tmp_path / "file", b"old")
    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        atomic.write_bytes(tmp_path / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_an_interrupted_write_cleans_up_too(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("is_secret", "mode"), [(False, 0o640), (True, 0o600)])
def test_others_may_read_a_file_that_is_not_secret(tmp_path, is_secret, mode):
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "file", b"new", is_secret=is_secret)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_the_folder_is_synced_after_the_new_name(tmp_path, monkeypatch):
    order, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (
            order.append(
                "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
            ),
            sync(handle),
        ),
    )
    monkeypatch.setattr(
        os, "replace", lambda *names: (order.append("name"), replace(*names))
    )
    atomic.write_bytes(tmp_path / "file", b"new")
    assert order == ["file", "name", "folder"]


def test_drafts_that_were_left_are_removed_and_nothing_else(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    (tmp_path / "file.0badcafe.tmp").write_bytes(b"half")
    (tmp_path / "step-1.tmp").mkdir()
    (tmp_path / "step-1.tmp" / "x").write_bytes(b"half")
    atomic.remove_drafts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_error_names_the_file_and_not_its_draft(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="directory") as caught:
        atomic.write_bytes(tmp_path / "file", b"x")
    assert caught.value.filename == str(tmp_path / "file")
