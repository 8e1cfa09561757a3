from pathlib import Path

import pytest

from lightsplit.results.appending import append_line, whole_lines


def test_lines_come_back_with_their_numbers(tmp_path):
    file = tmp_path / "new" / "log"
    assert whole_lines(file) == []
    append_line(file, b"one")
    append_line(file, b"two")
    assert whole_lines(file) == [(1, b"one"), (2, b"two")]


def test_a_line_that_a_crash_cut_short_does_not_count(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"one\ntw")
    assert whole_lines(file) == [(1, b"one")]
    append_line(file, b"three")
    assert whole_lines(file) == [(1, b"one"), (3, b"three")]


def test_a_full_disk_is_told_with_the_files_name():
    with pytest.raises(OSError, match="No space left") as caught:
        append_line(Path("/dev/full"), b"a line")
    assert caught.value.filename == "/dev/full"
