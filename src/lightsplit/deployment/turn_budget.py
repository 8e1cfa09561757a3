"""How long a turn or a round may take in all, whatever its clients do in the meantime.

The idle clock starts anew with every message, so a client that repeats messages or
evaluates without end never runs into it, and neither does one that has gone. The budget
of a turn starts when the turn begins, and nothing starts it anew. The same holds for a
round, however often it begins again.
"""

import time

SPARE_MOVES = 10  # for an evaluation, and for returning after a lost connection


class TurnBudget:
    """The time that the run has waited for the turn or round that must end next.

    Args:
        step_timeout_seconds: the longest that one move of a client may take.
        turn_timeout_seconds: of a whole turn; None is one step timeout per step of the
            turn and ten more.
    """

    def __init__(
        self, step_timeout_seconds: float, turn_timeout_seconds: float | None = None
    ) -> None:
        self._step_seconds = step_timeout_seconds
        self._turn_seconds = turn_timeout_seconds
        self._awaited: object = None
        self._began = 0.0

    def seconds(self, steps: int) -> float:
        """Return how long a turn of so many steps may take."""
        if self._turn_seconds is not None:
            return self._turn_seconds
        return self._step_seconds * (steps + SPARE_MOVES)

    def is_used_up(self, awaited: object, seconds: float) -> bool:
        """Return whether the run has waited too long; ask again and again.

        Args:
            awaited: the very turn or round that must end next; None if there is none.
            seconds: how long it may take.
        """
        now = time.monotonic()
        if awaited is not self._awaited:
            self._awaited, self._began = awaited, now
        return awaited is not None and now - self._began > seconds
