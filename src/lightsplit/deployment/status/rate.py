"""The recent speed of a run."""

from collections import deque

_RATE_SECONDS = 10.0


class Rate:
    """The recent rate of steps per second; earlier waits do not count."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now: float, steps: int) -> float:
        """Return the rate at time ``now``, when ``steps`` steps are done."""
        self._seen.append((now, steps))
        while now - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        return (steps - before) / (now - since) if now > since else 0.0
