"""The server's end of a networked run: one object for its sessions and its displays.

    Coordinator ─► ClientSession (one per connection) ─► RunControl ─► ServerRun

``ServerRun`` knows the run's next assignment, ``RunControl`` decides which client may
speak, and a session checks the order of messages on its connection.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightsplit.deployment.code_count import CodeCount
from lightsplit.deployment.door import Door
from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.deployment.prediction_share import PredictionShare
from lightsplit.deployment.refusals import Refusals
from lightsplit.deployment.roster import Roster
from lightsplit.deployment.round_control import RoundControl
from lightsplit.deployment.round_run import RoundRun
from lightsplit.deployment.run_control import RunControl
from lightsplit.deployment.server_run import ServerRun
from lightsplit.deployment.session import ClientSession
from lightsplit.deployment.splitfed_run import SplitFedRun
from lightsplit.deployment.stopwatch import Stopwatch
from lightsplit.errors import RunError
from lightsplit.protocol import Contract
from lightsplit.protocol.control import Finished
from lightsplit.runs.guard import Guard
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.progress import Progress
from lightsplit.runs.run_state import RunState
from lightsplit.runtime import Server
from lightsplit.transports import Peer, Session


class Coordinator:
    """Opens the sessions of one run, and ends the run.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        run: its random name.
        folder: for checkpoints; the run resumes from the newest one in it.
        names: the clients that may join, in the order of their turns; None admits the
            first that come.
        guard: judges the clients.
        stays: called with the run's steps if the run was over before this server
            started; returns whether to stay for predictions. If not, the server waits
            only for clients that had not heard of the end.

    Attributes:
        members: the clients of the run.
        refusals: how often a client was refused, by reason.
    """

    def __init__(  # noqa: PLR0913
        self,
        server: Server,
        contract: Contract,
        plan: RunPlan,
        *,
        run: str,
        folder: Path,
        names: list[str] | None = None,
        guard: Guard | None = None,
        stays: Callable[[int], bool] = lambda _steps: True,
    ) -> None:
        self.contract = contract
        self.refusals = Refusals()
        self._lock = threading.RLock()
        self.members = Roster(contract.clients, self._lock, names)
        self._run, self._control = self._make_run(
            server, plan, run=run, folder=folder, guard=guard
        )
        with self._lock:
            self._control.end_if_over(stays)
        self._idle = IdleTimeout(plan.step_timeout_seconds)
        self._door = Door(self.members)
        self._share = PredictionShare(self._control.is_training)

    def _make_run(
        self, server: Server, plan: RunPlan, *, guard: Guard | None, **places: Any
    ) -> tuple[ServerRun | RoundRun, RunControl]:
        """Return the run and its control: of turns, or of rounds of all owners."""
        terms, members = self.contract, self.members
        if terms.has_rounds:
            kind = RoundRun if terms.is_parallel else SplitFedRun
            rounds = kind(server, terms, plan, members, **places)
            return rounds, RoundControl(rounds, members, self._lock)
        turns = ServerRun(server, terms, plan, members, guard=guard, **places)
        return turns, RunControl(turns, members, self._lock)

    def session(self, peer: Peer) -> Session:
        """Return the session that answers a new connection, or refuse it."""
        self._door.enter(peer)
        return ClientSession(self._control, self._idle, self._share, self._door, peer)

    # The life of the run.

    def wait(self, timeout_seconds: float) -> bool:
        """Wait a little, cut off idle clients, and say whether the server may close."""
        control = self._control
        with self._lock:
            control.over.wait_for(lambda: control.may_close, timeout_seconds)
            for peer in self._idle.expired():
                self._cut_off(peer)
            control.check_time()
            return control.may_close

    def stop(self) -> None:
        """End the run at the next boundary and save it; it can be resumed later.

        If no boundary comes within the step timeout, the run ends without saving the
        turn that is under way.
        """
        with self._lock:
            self._control.ask_to_stop()

    def close(self) -> None:
        """Free the replies that were kept for clients that might have come back."""
        with self._lock:
            self._run.close()

    @property
    def progress(self) -> Progress:
        """How far the run has come."""
        with self._lock:
            self._run.count_bytes()
            return self._run.progress

    @property
    def state(self) -> RunState:
        """Where the run stands, and its rules."""
        return self._run.state

    @property
    def guard(self) -> Guard | None:
        """The guard that judges the clients, if the run has one."""
        return self._run.state.guard

    @property
    def run_name(self) -> str:
        """The random name of the run, to which hand-offs are bound."""
        return self._run.run

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one."""
        with self._lock:
            return self._run.position

    @property
    def finished(self) -> Finished | None:
        """The message that ends the run, once it is over."""
        return self._control.finished

    @property
    def failure(self) -> RunError | None:
        """The error of the server itself that ended the run, if there was one."""
        return self._control.failure

    @property
    def stays(self) -> bool:
        """Return whether this server found its run over and stays for predictions."""
        return self._control.stays

    @property
    def is_cut_short(self) -> bool:
        """Return whether the run was stopped in the middle of a turn, not saved."""
        return self._control.is_cut_short

    @property
    def is_over(self) -> bool:
        """Return whether no further turn begins."""
        return self._control.is_over

    @property
    def may_close(self) -> bool:
        """Return whether no client needs the server any more."""
        return self._control.may_close

    @property
    def computing(self) -> Stopwatch:
        """How long this server has been computing steps."""
        return self._run.computing

    @property
    def codes(self) -> CodeCount:
        """The distinct codes of the clients' last evaluations."""
        return self._run.codes

    @property
    def round_number(self) -> int | None:
        """The rounds that are over; None in a run of turns."""
        with self._lock:
            return self._run.number if isinstance(self._run, RoundRun) else None

    def at_work(self) -> set[int]:
        """Return the clients whose turn or round it is, for a display."""
        with self._lock:
            return self._run.at_work()

    def _cut_off(self, peer: Peer) -> None:
        for member in self.members:
            if member.peer is peer:
                self._control.disconnect(member)
        peer.cancel()
