import os

import pytest

from lightsplit.results import atomic


def fail(*_):
    raise OSError("no space left")


def test_a_file_holds_what_was_written(tmp_path):
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
def test_others_may_read_what_is_no_secret(tmp_path, is_secret, mode):
    before = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "file", b"new", is_secret=is_secret)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode
