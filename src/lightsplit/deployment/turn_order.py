"""Whose turn it is in a networked run.

A turn that is applied but not yet handed in is *late* while the next one is current.
Clients hand in turns in order, so at most one turn is late.
"""

from itertools import islice

from lightsplit.deployment.assignments import Assignment, AssignmentQueue
from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.deployment.turn_log import TurnLogs
from lightsplit.runs.run_state import RunState
from lightsplit.runtime import Pace


class TurnOrder:
    """The current and the late assignment, starting at any turn of the schedule.

    Args:
        state: of the run.
        boundary: has the number of the next turn.
        logs: of the turns under way.
        every_client_evaluates: whether every client evaluates after a turn, or only the
            client of the turn, for all.
    """

    def __init__(
        self,
        state: RunState,
        boundary: BoundaryState,
        logs: TurnLogs,
        *,
        every_client_evaluates: bool,
    ) -> None:
        self._state = state
        self._boundary = boundary
        self._logs = logs
        self._every_client_evaluates = every_client_evaluates
        self._queue: AssignmentQueue | None = None
        self._paced: tuple[Assignment, Pace] | None = None
        self._is_over = False

    def begin(self) -> None:
        """Assign the turn that follows those that are over."""
        self._queue = AssignmentQueue(
            self._state.schedule,
            turns=self._state.progress.turns,
            eval_every=self._state.eval_every,
            every_client_evaluates=self._every_client_evaluates,
        )

    def end(self) -> None:
        """Assign no further turn."""
        self._is_over = True

    @property
    def is_begun(self) -> bool:
        """Return whether all clients have joined and a turn has been assigned."""
        return self._queue is not None

    @property
    def is_at_boundary(self) -> bool:
        """Return whether no turn is under way."""
        return self._queue is None or (
            self._queue.is_at_boundary and self._logs.are_empty
        )

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one; 0 before it."""
        turns = self._state.progress.turns
        if not turns:
            return 0, 0
        last = next(islice(self._state.schedule.turns(), turns - 1, turns))
        return last.epoch + 1, last.round + 1

    @property
    def current(self) -> Assignment | None:
        """The assignment that is being worked on; None before and after the run."""
        if self._queue is None or self._is_over:
            return None
        steps = self._state.progress.place
        return self._queue.current(number=self._boundary.number, steps=steps)

    @property
    def late(self) -> Assignment | None:
        """The turn that is applied but not yet handed in, if there is one."""
        return self._logs.late

    @property
    def oldest(self) -> Assignment | None:
        """The assignment that a client has to hand in next."""
        return self.late or self.current

    def of(self, client: int) -> Assignment | None:
        """Return the assignment of a client, if it has one now."""
        for assignment in (self.late, self.current):
            if assignment is not None and assignment.client == client:
                return assignment
        return None

    def pace(self, assignment: Assignment) -> Pace:
        """Return the position of a current turn's steps in the run.

        This needs a pass over all clients, so it is computed once per turn.
        """
        if self._paced is None or self._paced[0] is not assignment:
            client, is_late = assignment.client, assignment is self.late
            pace = self._state.pace(client, assignment.steps, is_counted=is_late)
            self._paced = assignment, pace
        return self._paced[1]

    @property
    def evaluates_next(self) -> bool:
        """Return whether an evaluation follows the current assignment."""
        return self._queue is not None and not self._queue.ends_turn

    def complete(self) -> None:
        """Go on to the assignment after the current one."""
        if self._queue is not None:
            self._queue.complete()
