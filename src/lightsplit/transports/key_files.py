"""Files of keys and certificates: complete or absent, created once, never replaced.

Only its owner can read a secret file, from the moment it exists. A secret file that
others can read is refused, because they may already know it.
"""

import os
import stat
import tempfile
from pathlib import Path

from lightsplit.errors import ConfigError

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644
HAS_MODES = os.name == "posix"  # elsewhere the bits do not say who may read


def write_new(path: Path, content: bytes, *, is_secret: bool) -> None:
    """Create ``path`` with ``content`` atomically; refuse an existing path."""
    if os.path.lexists(path):
        raise ConfigError(f"{path} already exists and will not be overwritten")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(SECRET_MODE if is_secret else PUBLIC_MODE)
            path.hardlink_to(name)  # unlike a rename, fails if the path exists by now
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path, *, is_secret: bool) -> bytes:
    """Return the content of ``path``; refuse a secret that others can read."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if is_secret and HAS_MODES and mode & 0o077:
                raise ConfigError(
                    f"{path} holds a secret that others can use (mode {mode:04o}); "
                    f"if none of them has seen it: chmod 600 {path}"
                )
            return file.read()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
