"""A folder that one process works in at a time.

Two servers in one run's folder, or two clients with one state, would replace each
other's files. The lock is on the folder itself and leaves no file behind; the system
gives it back when the process ends, however that happens.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from lightsplit.errors import RunError


class Hold:
    """Keeps other processes out of a folder until the block ends.

    Args:
        folder: to hold; None holds nothing. A folder that does not exist yet is held as
            soon as ``take`` finds it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._handle: int | None = None

    def __enter__(self) -> "Hold":
        self.take()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def take(self) -> None:
        """Hold the folder if it exists and this object does not hold it yet.

        On a file system without locks, work goes on without one.
        """
        if (
            self._folder is None
            or self._handle is not None
            or not self._folder.is_dir()
        ):
            return
        handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise RunError(
                f"another process works in {self._folder}: let it end first, or name "
                "another folder"
            ) from error
        except OSError:
            pass
        self._handle = handle
