"""Files that are only ever added to, line by line, for their owner's eyes."""

import os
from pathlib import Path

from lightsplit.results.atomic import named_errors

_MODE = 0o600
CUT_SHORT = b" (cut short)"


def append_line(file: Path, line: bytes, *, waits: bool = True) -> None:
    """Add a line; mark one that a crash cut short.

    Args:
        file: to add to.
        line: without its end.
        waits: whether to wait until it is on the disk.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with named_errors(file), open(file, "a+b", opener=_open_for_owner) as log:
        if log.tell() > 0:
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(CUT_SHORT + b"\n")
        log.write(line + b"\n")
        log.flush()
        if waits:
            os.fsync(log.fileno())


def whole_lines(file: Path) -> list[tuple[int, bytes]]:
    """Return the lines that are complete, with their numbers; none without a file."""
    if not file.exists():
        return []
    *lines, _unfinished = file.read_bytes().split(b"\n")
    numbered = enumerate(lines, start=1)
    return [(number, line) for number, line in numbered if not line.endswith(CUT_SHORT)]


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, _MODE)
