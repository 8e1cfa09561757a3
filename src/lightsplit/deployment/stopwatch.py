"""How long the server has been computing, compared with its time running."""

import time
from types import TracebackType


class Stopwatch:
    """Adds up the seconds that pass inside ``with`` blocks, all under one lock.

    Attributes:
        seconds: so far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._made = self._began = time.monotonic()

    def __enter__(self) -> None:
        self._began = time.monotonic()

    @property
    def share(self) -> float:
        """The share of the time since the watch was made, from 0 to 1."""
        age = time.monotonic() - self._made
        return self.seconds / age if age else 0.0

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.seconds += time.monotonic() - self._began
