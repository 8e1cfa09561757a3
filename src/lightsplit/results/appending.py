"""Files that are only ever added to, line by line, for their owner's eyes."""

import os
from pathlib import Path

_MODE = 0o600
CUT_SHORT = b" (cut short)"


def append_line(file: Path, line: bytes) -> None:
    """Add a line and wait until it is on the disk; mark one that a crash cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a+b", opener=_open_for_owner) as log:
        if log.tell() > 0:
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(CUT_SHORT + b"\n")
        log.write(line + b"\n")
        log.flush()
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
