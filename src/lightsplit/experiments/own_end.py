"""The end of a run, as recorded in a client's own folder.

    STATE/end.json   the experiment, and the client's figures; absent while turns come

A client that is restarted after its run has ended asks the server first, because the
run may have been extended by more epochs. If no server answers for a few seconds, there
is nothing to wait for, and the client ends with its saved figures.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightsplit.errors import TransportError
from lightsplit.results import atomic, finite

PATIENCE_SECONDS = 10.0
_FILE_NAME = "end.json"


class OwnEnd:
    """Keeps a client's figures, and says when there is nothing left to wait for.

    Args:
        folder: of the client's state; None keeps nothing.
        experiment: as text; the end of a different experiment does not count.
        patience_seconds: how long to wait for a server that is no longer needed.

    Attributes:
        figures: of the run that has ended; None if this client has turns to take.
    """

    def __init__(
        self,
        folder: Path | None,
        experiment: str,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._file = None if folder is None else folder / _FILE_NAME
        self._experiment = experiment
        self._patience_seconds = patience_seconds
        self._first_away: float | None = None
        self.figures = self._read()

    def forget(self) -> None:
        """Note that the client has turns to take again."""
        self.figures = None
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def keep(self, figures: dict[str, Any]) -> None:
        """Note that the run has ended; everything else is already saved."""
        self.figures = figures
        if self._file is not None:
            content = {"experiment": self._experiment, "figures": figures}
            atomic.write_text(self._file, json.dumps(finite(content)))

    def patient(
        self, away: Callable[[TransportError], None]
    ) -> Callable[[TransportError], None]:
        """Return ``away``, which raises the error once waiting is pointless."""

        def tell(error: TransportError) -> None:
            now = time.monotonic()
            if self._first_away is None:
                self._first_away = now
            is_long = now - self._first_away >= self._patience_seconds
            if self.figures is not None and is_long:
                raise error
            away(error)

        return tell

    def _read(self) -> dict[str, Any] | None:
        if self._file is None:
            return None
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads(self._file.read_text())
            if content["experiment"] == self._experiment:
                return dict(content["figures"])
        return None
