"""When to wake the owners in a run of rounds, and when the run stops."""

import threading
import time

from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.round_run import RoundRun
from lightsplit.deployment.run_control import RunControl
from lightsplit.errors import RunError
from lightsplit.runs.rounds import Round

_WAITS = 5  # of a round for late owners: at its beginning, and at four stages at most


class RoundControl(RunControl):
    """Moves rounds on when their messages have arrived or their time is up.

    Callers hold ``lock``. Its arguments are those of RunControl, with a RoundRun.
    """

    run: RoundRun  # type: ignore[assignment]

    def __init__(self, run: RoundRun, roster: Roster, lock: threading.RLock) -> None:
        super().__init__(run, roster, lock)  # type: ignore[arg-type]

    def begin_if_ready(self) -> None:
        """Begin the run once enough owners are there."""
        if self.run.begin_if_ready(time.monotonic()):
            self.pass_on()

    def check_time(self) -> None:
        """Let a round go on without late owners; end a run whose round does not end."""
        if self.is_over:
            return
        self.begin_if_ready()
        self.pass_on()
        round_ = self.run.next_round
        silent = max(self._budget.seconds(1), 2 * self.run.plan.round_timeout_seconds)
        whole = 0.0 if round_ is None else self._seconds(round_)
        if self._budget.is_used_up(round_, whole):
            self.fail(self._unended(f"was not over within {whole:.0f} seconds"))
        elif self.run.waited(time.monotonic()) > silent:
            self.fail(self._unended(f"stood still for {silent:.0f} seconds"))
        elif time.monotonic() > self._stop_deadline:
            self._stop_now()
            self._end()

    def _seconds(self, round_: Round) -> float:
        """Return how long a round may take in all, however often it begins again."""
        plan, contract = self.run.plan, self.run.contract
        turns = (1,) if contract.is_parallel else round_.steps_of
        seconds = sum(self._budget.seconds(steps) for steps in turns)
        if self.run.least == contract.clients:
            return seconds
        waits = _WAITS if contract.is_parallel else _WAITS + contract.clients
        return max(seconds, waits * plan.round_timeout_seconds)

    def _unended(self, what: str) -> RunError:
        restarts = self.run.restarts
        owners = restarts.owners or self.run.awaited()
        names = ", ".join(self.roster[index].name for index in sorted(owners))
        why = f"it waits for {names}"
        if restarts.owners:
            times = "once" if restarts.count == 1 else f"{restarts.count} times"
            why = f"refused messages of {names} made it begin again {times}"
        return RunError(
            f"round {self.run.number} {what}: {why}; resume when they are back, give "
            "them more time with --turn-timeout-seconds, or go on without them with "
            "--min-clients"
        )

    def pass_on(self) -> None:
        """Do what is due, and wake every owner that it concerns."""
        if self.is_over:
            self._end()
            return
        if self.wants_stop and self.run.is_at_boundary:
            self._stop_now()
            self._end()
            return
        self._advance()
        if self.is_over:
            self._end()
        elif self.wants_stop and self.run.is_at_boundary:
            self._stop_now()
            self._end()

    def _advance(self) -> None:
        """Do what is due.

        The caller did not cause an error here: the cause is another owner or the server
        itself, and the error would return at every call.
        """
        try:
            woken = self.run.advance(time.monotonic(), stops=self.wants_stop)
        except Exception as error:  # noqa: BLE001  it ends the run
            self.fail(error)
            return
        for index in woken:
            self.roster[index].wake.notify_all()

    def stop_if_idle(self) -> None:
        """Stop if no owner is working on a round; an unfinished round is not saved."""
        if self.is_over:
            return
        at_work = [self.roster[index] for index in self.run.at_work()]
        if self.run.is_at_boundary or not any(one.peer for one in at_work):
            self._stop_now()
            self._end()

    def undo(self, member: Member) -> None:
        """Note that a connection has ended; the owner's messages still count."""
        self.run.leave(member)
        if self.wants_stop:
            self.stop_if_idle()

    def _stop_now(self) -> None:
        self.is_cut_short = not self.run.is_at_boundary
        if self.run.is_begun and not self.is_cut_short:
            self.run.save()
        self._is_stopped = True
