"""Who may speak, who is woken next, and when a networked run is over.

All sessions of a run share one ``RunControl`` and hold its lock while they compute or
change anything. A client that waits for its turn sleeps on its own condition and is
woken by its turn, by the end of the run, or by the end of its connection.

After the last turn the server stays until every client has acknowledged the end, or for
``step_timeout_seconds``: a client that was cut off can still come back for it.
"""

import math
import threading
import time
from collections.abc import Callable

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.key_board import KeyBoard
from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.server_run import ServerRun
from lightsplit.deployment.turn_budget import TurnBudget
from lightsplit.errors import LightSplitError, ProtocolError, RunError
from lightsplit.protocol.control import Finished
from lightsplit.transports import Peer

_JUST_NOW_SECONDS = 1.0


class RunControl:
    """Passes turns on, and ends the run when it is over or stopped.

    Callers hold ``lock``.

    Args:
        run: at the server.
        roster: its clients.
        lock: the one lock of the run.

    Attributes:
        keys: the messages by which clients agree on a key.
        over: notified when the server may close, now or soon.
        wants_stop: whether the run is to stop at the next boundary.
        failure: the error of the server itself that ended the run, if there was one.
        stays: whether a server that found its run over stays for predictions until it
            is stopped or every client has come back and heard of the end.
        is_cut_short: whether the run was stopped in the middle of a turn or round,
            without a save.
    """

    def __init__(self, run: ServerRun, roster: Roster, lock: threading.RLock) -> None:
        self.run = run
        self.roster = roster
        self.keys = KeyBoard(run.contract.clients)
        self.lock = lock
        self.over = threading.Condition(lock)
        self.wants_stop = False
        self.failure: RunError | None = None
        self._budget = TurnBudget(
            run.plan.step_timeout_seconds, run.plan.turn_timeout_seconds
        )
        self._stop_deadline = math.inf
        self._last_step = -math.inf
        self._is_stopped = False
        self.is_cut_short = False
        self._ended = 0.0
        self.stays = False

    @property
    def finished(self) -> Finished | None:
        """The message that ends the run, once it is over."""
        return self.run.finished

    @property
    def is_over(self) -> bool:
        """Return whether no further turn begins."""
        return self.finished is not None or self._is_stopped

    def note_step(self) -> None:
        """Remember that a client has just sent a message of a step."""
        self._last_step = time.monotonic()

    def is_training(self) -> bool:
        """Return whether a client has sent a message of a step just now.

        Needs no lock.
        """
        return time.monotonic() - self._last_step < _JUST_NOW_SECONDS

    @property
    def may_close(self) -> bool:
        """Return whether no client needs the server any more."""
        if not self.is_over:
            return False
        if self._is_stopped or self.wants_stop:
            return True
        waited = time.monotonic() - self._ended
        has_told_all = all(member.is_told for member in self.roster)
        is_late = waited > self.run.plan.step_timeout_seconds
        return has_told_all or (is_late and not self.stays)

    def begin_if_ready(self) -> None:
        """Begin the run once every client has said how many batches it has."""
        if not self.run.turns.is_begun and self.roster.are_ready:
            self.run.begin()

    def end_if_over(self, stays: Callable[[int], bool]) -> None:
        """End a run that was over before this server started.

        ``stays`` says, from the run's steps, whether the server stays for predictions;
        if not, it waits only for clients that had not heard of the end.
        """
        if not self.run.is_restored_over:
            return
        self.run.begin()
        self.stays = stays(self.run.progress.steps)
        if not self.stays:
            self.run.recall_told()
        self._end()

    def note_told(self, member: Member) -> None:
        """Remember, even across a restart, that a client knows of the end."""
        member.is_told = True
        self.run.save_told()
        self.over.notify_all()

    def fail(self, error: Exception) -> None:
        """End the run because of an error that no client has caused."""
        if self.failure is None:
            self.failure = as_run_error(error)
            self._is_stopped = True
            self._end()

    def ask_to_stop(self) -> None:
        """Stop at the next boundary, or when that takes too long."""
        if not self.wants_stop:
            self.wants_stop = True
            patience = self.run.plan.step_timeout_seconds
            self._stop_deadline = time.monotonic() + patience
        self.begin_if_ready()  # the checkpoint may be of a finished run
        self.stop_if_idle()
        self.over.notify_all()

    def check_time(self) -> None:
        """End a run that has waited too long for a turn, or for a boundary to stop."""
        if self.is_over:
            return
        oldest = self.run.turns.oldest
        seconds = self._budget.seconds(0 if oldest is None else oldest.steps)
        if self._budget.is_used_up(oldest, seconds):
            assert oldest is not None  # noqa: S101  a turn used its time up
            name = self.roster[oldest.client].name
            self.fail(
                RunError(
                    f"{name} has not handed in turn {oldest.number} within "
                    f"{seconds:.0f} seconds; resume when this client is back, or give "
                    "it more time with --turn-timeout-seconds"
                )
            )
        elif time.monotonic() > self._stop_deadline:
            self._stop_now()
            self._end()

    def pass_on(self) -> None:
        """Wake the client whose turn begins, or all of them if the run is over."""
        if self.wants_stop and self.run.turns.is_at_boundary:
            self._stop_now()
        if self.is_over:
            self._end()
            return
        if self.wants_stop:
            self.stop_if_idle()
        assignment = self.run.turns.current
        if assignment is not None:
            self.roster[assignment.client].wake.notify_all()

    def stop_if_idle(self) -> None:
        """Stop if no client works on a turn; a turn that was left is not saved."""
        if self.is_over:
            return
        assignment = self.run.turns.oldest
        if assignment is None or self.roster[assignment.client].peer is None:
            self._stop_now()
            self._end()

    def undo(self, member: Member) -> None:
        """Undo the open step of a client whose connection has ended."""
        assignment = self.run.turns.of(member.index)
        if assignment is not None:
            self.run.abandon(assignment)
            if self.wants_stop:
                self.stop_if_idle()

    def disconnect(self, member: Member) -> None:
        """Forget the connection of a client and undo its open step."""
        member.peer = None
        self.undo(member)

    def check_connected(self, member: Member, peer: Peer) -> None:
        """Raise unless ``peer`` is the live connection of ``member``."""
        if member.peer is not None and member.peer is not peer:
            raise ProtocolError(
                f"a newer connection under the name {member.name!r} took over",
                code="refused",
            )
        if member.peer is None or not peer.is_alive():
            raise ProtocolError("the connection was cut off", code="stale-turn")

    def check_current(self, assignment: Assignment) -> None:
        """Raise unless the run still waits for ``assignment``."""
        assigned = self.run.turns.of(assignment.client)
        if self.is_over or assigned is not assignment:
            raise ProtocolError(
                f"turn {assignment.number} was revoked", code="stale-turn"
            )

    def _stop_now(self) -> None:
        self.is_cut_short = not self.run.turns.is_at_boundary
        if self.run.turns.is_begun and not self.is_cut_short:
            self.run.save()
        self._is_stopped = True

    def _end(self) -> None:
        self._ended = time.monotonic()
        self.over.notify_all()
        for member in self.roster:
            member.wake.notify_all()


def stopping() -> ProtocolError:
    """Return the refusal of a server that ends before its run is over."""
    return ProtocolError("the server stops and may come back", code="shutting-down")


def as_run_error(error: Exception) -> RunError:
    """Return an error of the server as one sentence for its operator."""
    if isinstance(error, RunError):
        return error
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return RunError(f"the run cannot go on: {where}{error.strerror or error}")
    if isinstance(error, LightSplitError):
        return RunError(f"the run cannot go on: {error}")
    return RunError(
        f"the run cannot go on: {type(error).__name__}: {' '.join(str(error).split())}"
    )
