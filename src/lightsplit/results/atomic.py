"""Files that are either whole or not there: a crash never leaves half of one."""

import os
import tempfile
from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Replace ``path`` by ``content`` in UTF-8 in one step."""
    write_bytes(path, content.encode())
