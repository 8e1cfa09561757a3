"""A fair share of the server's time for predictions.

    waiting: alice, alice, bob ─► one at a time, least served name first ─► compute
                                             ▲                                │
                                             └── pause as long as it took ◄───┘

While the run trains, predictions together get at most half of the time, however many
streams ask for them. Among themselves, each name gets an equal share.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PredictionShare:
    """Admits one prediction at a time.

    Args:
        is_training: returns whether a client trains now, who must not be slowed down.
    """

    def __init__(self, is_training: Callable[[], bool]) -> None:
        self._is_training = is_training
        self._changed = threading.Condition()
        self._waiting: Counter[int] = Counter()
        self._used_seconds: defaultdict[int, float] = defaultdict(float)
        self._is_busy = False
        self._opens_at = 0.0

    @contextmanager
    def turn(self, client: int) -> Iterator[None]:
        """Wait for the turn of ``client``, and hold it for the block."""
        with self._changed:
            self._join(client)
            while not self._is_next(client):
                self._changed.wait(self._pause_left() or None)
            self._waiting[client] -= 1
            self._is_busy = True
        began = time.monotonic()
        try:
            yield
        finally:
            self._end(client, time.monotonic() - began)

    def _join(self, client: int) -> None:
        """Line up; a name that was away gets no credit for that time."""
        if not self._waiting[client]:
            present = [one for one, count in self._waiting.items() if count]
            least = min((self._used_seconds[one] for one in present), default=0.0)
            self._used_seconds[client] = max(self._used_seconds[client], least)
        self._waiting[client] += 1

    def _is_next(self, client: int) -> bool:
        if self._is_busy or self._pause_left():
            return False
        present = [one for one, count in self._waiting.items() if count]
        return client == min(present, key=lambda one: (self._used_seconds[one], one))

    def _pause_left(self) -> float:
        if not self._is_training():
            return 0.0
        return max(0.0, self._opens_at - time.monotonic())

    def _end(self, client: int, seconds: float) -> None:
        with self._changed:
            self._used_seconds[client] += seconds
            self._is_busy = False
            self._opens_at = time.monotonic() + seconds
            self._changed.notify_all()
