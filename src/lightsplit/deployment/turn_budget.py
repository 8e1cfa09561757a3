"""How long a turn may take in all, whatever its client does in the meantime.

The idle clock starts anew with every message, so a client that repeats messages or
evaluates without end never runs into it, and neither does one that has gone. The budget
of a turn starts when the turn begins, and nothing starts it anew.
"""

import time

from lightsplit.deployment.assignments import Assignment

SPARE_MOVES = 10  # for an evaluation, and for returning after a lost connection


class TurnBudget:
    """The time that the run has waited for the turn that is to be handed in next.

    Args:
        step_timeout_seconds: the longest that one move of a client may take.
        turn_timeout_seconds: of a whole turn; 0 is one step timeout per step of the
            turn and ten more.
    """

    def __init__(
        self, step_timeout_seconds: float, turn_timeout_seconds: float = 0.0
    ) -> None:
        self._step_seconds = step_timeout_seconds
        self._turn_seconds = turn_timeout_seconds
        self._assignment: Assignment | None = None
        self._began = 0.0

    def seconds(self, assignment: Assignment) -> float:
        """Return how long an assignment may take."""
        if self._turn_seconds:
            return self._turn_seconds
        return self._step_seconds * (assignment.steps + SPARE_MOVES)

    def is_used_up(self, assignment: Assignment | None) -> bool:
        """Return whether the run has waited too long; ask again and again."""
        now = time.monotonic()
        if assignment is not self._assignment:
            self._assignment, self._began = assignment, now
        if assignment is None:
            return False
        return now - self._began > self.seconds(assignment)
