"""Growing pauses between tries to reach a server.

Only what leads somewhere starts the pauses anew: a step that was answered, or a line
that held for a while. A server that accepts every connection and breaks it at once is
asked as rarely as one that is away, and given up as soon.
"""

import math
import time

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 5.0


class Pauses:
    """The pause before the next try, and the time when to give up.

    Args:
        give_up_seconds: how long tries may lead nowhere.
    """

    def __init__(self, give_up_seconds: float) -> None:
        self._give_up_seconds = give_up_seconds
        self.restart()

    def restart(self) -> None:
        """Note that the line has led somewhere."""
        self._pause = 0.0
        self._deadline = math.inf
        self._opened = math.inf

    def before_try(self) -> None:
        """Wait before another try, unless it is the first one."""
        if time.monotonic() - self._opened > LONGEST_SECONDS:
            self.restart()  # the last line held for a while
        time.sleep(self._pause)
        self._pause = min(max(2 * self._pause, FIRST_SECONDS), LONGEST_SECONDS)
        self._opened = math.inf

    def note_open(self) -> None:
        """Note that the server has let the client in."""
        self._opened = time.monotonic()

    @property
    def is_time_up(self) -> bool:
        """Return whether another try would come too late."""
        now = time.monotonic()
        if math.isinf(self._deadline):
            self._deadline = now + self._give_up_seconds
        return now + self._pause > self._deadline
