"""Which clients know that the run is over, kept on disk beside the checkpoints.

    checkpoint/farewells.json   the run, its steps, and the bytes of each such client

After the last turn a server waits until every client has acknowledged the end. If it is
killed in the meantime, the next server finds here which clients have already left.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from lightsplit.deployment.roster import Roster
from lightsplit.results import atomic

_FILE_NAME = "farewells.json"


class Farewells:
    """Keeps which clients of a run know of its end.

    Args:
        folder: of the run's checkpoints.
        roster: its clients.
    """

    def __init__(self, folder: Path, roster: Roster) -> None:
        self._file = folder / _FILE_NAME
        self._roster = roster

    def save(self, run: str, steps: int) -> None:
        """Write which clients have heard of the end of ``run`` after so many steps.

        The run is over and saved, so a full disk only makes the next server wait.
        """
        told = {m.name: m.meter.by_kind() for m in self._roster if m.is_told}
        content = {"run": run, "steps": steps, "told": told}
        with suppress(OSError):
            atomic.write_text(self._file, json.dumps(content))

    def recall(self, run: str, steps: int) -> None:
        """Mark the clients that have heard of this end, and restore their bytes."""
        content = self._read()
        if (content.get("run"), content.get("steps")) != (run, steps):
            return
        told = content["told"]
        for member in self._roster:
            if member.name in told:
                member.meter.restore(told[member.name])
                member.is_told = True

    def _read(self) -> dict[str, Any]:
        """Return the content of the file; nothing if it is missing or unreadable."""
        with suppress(OSError, ValueError):
            found = json.loads(self._file.read_text())
            if isinstance(found, dict) and isinstance(found.get("told"), dict):
                return found
        return {}
