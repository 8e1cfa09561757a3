"""metrics.jsonl of a networked run, written while the run goes on."""

from typing import Any

from lightsplit.results import RunFolder


class LiveMetrics:
    """Adds every evaluation to metrics.jsonl as soon as it is known.

    A server that resumes has lost the evaluations since its checkpoint, so the first
    update replaces the file.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._written: int | None = None

    def update(self, history: list[dict[str, Any]]) -> None:
        """Write the lines of ``history`` that are new."""
        known = list(history)  # it may grow meanwhile
        if self._written is None:
            self._folder.write_metrics(known)
        else:
            for line in known[self._written :]:
                self._folder.append_metrics(line)
        self._written = len(known)
