"""Files that are either whole or not there: a crash never leaves half of one."""

import os
import secrets
from pathlib import Path


def write_bytes(path: Path, content: bytes, *, is_secret: bool = False) -> None:
    """Replace ``path`` by ``content`` in one step.

    Others may read it as they may any new file; a secret is its owner's alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    mode = 0o600 if is_secret else 0o666  # less what the umask takes away
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Replace ``path`` by ``content`` in UTF-8 in one step."""
    write_bytes(path, content.encode())
