"""How often the server of a run said no, by reason."""

import threading
from collections import Counter


class Refusals:
    """Counts refusals by their code; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, code: str) -> None:
        """Count one refusal."""
        with self._lock:
            self._counts[code] += 1

    def by_code(self) -> dict[str, int]:
        """Return the number of refusals of every code that occurred."""
        with self._lock:
            return dict(sorted(self._counts.items()))
