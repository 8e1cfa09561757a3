"""A networked run at the server: assignments, steps, boundaries, checkpoints.

    begin ─► grant ─► answer … answer ─► complete ─► [boundary] ─► grant …
               ▲           │  └─► start_next_early ─► grant to the next client
               └─ abandon ◄┘  (the client has gone)

A boundary lies between two turns; there the run can be saved. A restarted server stands
at the boundary that it saved last, and the clients return to it. The run is saved for
the first time before the first turn.

If no side travels, the next turn needs nothing from the client of the last one: it may
begin while that client still updates and saves its side.

Nothing here knows of connections or threads: the caller holds the lock.
"""

import time
from pathlib import Path

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.boundary_state import BoundaryState
from lightsplit.deployment.code_count import CodeCount
from lightsplit.deployment.networked_run import NetworkedRun
from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.turn_order import TurnOrder
from lightsplit.deployment.turn_steps import TurnSteps
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    EncryptedCode,
    EncryptedOutput,
    Reply,
    Request,
)
from lightsplit.protocol.control import Grant, TurnDone
from lightsplit.protocol.phases import step_kinds
from lightsplit.runs.checkpoint_folder import is_due
from lightsplit.runs.evaluation import LOSS, Figures, Report, mean_evaluation
from lightsplit.runs.guard import Guard
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import Server


class ServerRun(NetworkedRun[BoundaryState]):
    """Assigns turns, applies their steps, and saves the run at boundaries.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        roster: its clients.
        run: its random name.
        folder: for checkpoints; the run resumes from the newest one in it.
        guard: judges the clients.

    Attributes:
        state: where the run stands.
        turns: whose turn it is.
        finished: the message that ends the run, once it is over.
    """

    def __init__(  # noqa: PLR0913
        self,
        server: Server,
        contract: Contract,
        plan: RunPlan,
        roster: Roster,
        *,
        run: str,
        folder: Path,
        guard: Guard | None = None,
    ) -> None:
        boundary = BoundaryState(server.side)
        super().__init__(
            contract, plan, roster, boundary, run=run, folder=folder, guard=guard
        )
        self._steps = TurnSteps(server, contract, guard)
        self._logs = self._steps.logs
        self.turns = TurnOrder(
            self.state,
            self._boundary,
            self._logs,
            every_client_evaluates=plan.every_client_evaluates
            or contract.heads == "private",
        )
        self._reports: list[Report] = []
        self._clock = 0.0
        if self._saved.exists:
            self._restore()

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one; 0 before it."""
        return self.turns.position

    @property
    def codes(self) -> CodeCount:
        """The distinct codes of the last evaluations."""
        return self._steps.codes

    def at_work(self) -> set[int]:
        """Return the client whose turn it is."""
        current = self.turns.current
        return set() if current is None else {current.client}

    @property
    def has_begun(self) -> bool:
        """Return whether a turn was assigned, by this server or an earlier one."""
        return self.turns.is_begun or self._saved.exists

    def begin(self) -> None:
        """Assign the first turn, or the one that follows the checkpoint."""
        self._make_schedule()
        self.turns.begin()
        self._clock = time.monotonic()
        self._finish_if_over()
        if self.finished is None and not self._saved.exists:
            self.save()  # a restarted server must know the name and the clients

    def grant(self, assignment: Assignment) -> Grant:
        """Return an assignment as the message to its client."""
        if assignment.steps and self._logs.current.is_empty:
            self.state.begin_turn(assignment.client, self._boundary.capture)
        if assignment.evaluate:
            self.codes.begin(assignment.client)
        number, has_side = self._number_of(assignment), self.contract.side_travels
        pace = self.turns.pace(assignment)
        return Grant(
            turn=number,
            steps=assignment.steps,
            done=self._logs.of(assignment).done,
            first_step=pace.first_step,
            oldest_step=self._saved.oldest_steps[assignment.client],
            evaluate=assignment.evaluate,
            run_step=pace.run_step,
            run_steps=pace.run_steps,
            phase=pace.phase,
            tested=self._steps.tested(assignment.client),
            side=self._boundary.sealed_side if has_side else b"",
        )

    def _number_of(self, assignment: Assignment) -> int:
        """Return a turn's number, or for an evaluation that of the turn before it.

        A travelling side is sealed under the number of the turn that left it, and a
        guard may have undone later turns.
        """
        if assignment.steps or not self.contract.side_travels:
            return assignment.number
        return self._boundary.last_turn

    # The steps of a turn.

    def answer(self, assignment: Assignment, message: Request) -> Reply:
        """Return the reply to a message of a turn; each step is applied once."""
        with self.computing:
            pace = self.turns.pace(assignment)
            return self._steps.answer(assignment, pace, message)

    def infer(self, message: CodeMessage) -> Reply:
        """Return the output for a code outside training; nothing changes."""
        return self._steps.infer(message)

    def infer_encrypted(self, message: EncryptedCode) -> EncryptedOutput:
        """Return the encrypted output for an encrypted code; nothing changes."""
        return self._steps.infer_encrypted(message)

    def settle(self) -> None:
        """Do the work that was put off until the reply was on its way."""
        with self.computing:
            self._steps.settle()

    def abandon(self, assignment: Assignment) -> None:
        """Undo the open step of a client that has gone."""
        self._steps.abandon(assignment, self.turns.pace(assignment).first_step)

    # The end of a turn.

    def start_next_early(self, assignment: Assignment) -> bool:
        """Begin the next turn before this one is handed in; say whether that happened.

        All steps of this turn must be applied, and nothing may depend on its hand-in:
        no side that travels, no guard that judges it, no evaluation, checkpoint or end
        of the run that is due after it.
        """
        is_current = assignment is self.turns.current
        is_applied = 0 < assignment.steps == self._logs.current.done
        if not (is_current and is_applied) or self._needs_hand_in(assignment):
            return False
        self._count(assignment)
        self.turns.complete()
        self._logs.make_late(assignment)
        return True

    def complete(self, assignment: Assignment, member: Member, done: TurnDone) -> None:
        """Accept a turn; at a boundary evaluate, finish or save as is due."""
        self._check_complete(assignment, done)
        member.meter.add("hand_off", len(done.side))
        self._note(assignment, member, done)
        if assignment is self.turns.late:
            self._logs.end(assignment)
            return
        self._steps.settle()
        self._count(assignment)
        self._logs.end(assignment)
        if assignment.steps:
            boundary = self._boundary
            self.state.judge(assignment.turn, boundary.capture, boundary.put_back)
        self.turns.complete()
        if self.turns.is_at_boundary:
            self._pass_boundary(assignment)

    def save(self) -> None:
        """Write a checkpoint; only at a boundary."""
        self._saved.save(self.run)

    def close(self) -> None:
        """Free the replies of unfinished turns; no client will ask for them."""
        self._logs.clear()

    def _restore(self) -> None:
        self.run = self._saved.restore()
        if self._roster.are_ready:
            self._make_schedule()
            self.state.schedule.check_reaches(self.progress.place)

    def _make_schedule(self) -> None:
        batches = [member.batches for member in self._roster]
        self.state.schedule = self.plan.schedule(batches)

    def _needs_hand_in(self, assignment: Assignment) -> bool:
        """Return whether the next turn has to wait until this one is handed in."""
        return (
            self.contract.heads == "shared"
            or self.contract.clients == 1
            or self.state.guard is not None
            or self.turns.late is not None
            or self.turns.evaluates_next
            or self._is_save_due(assignment, self.progress.steps + assignment.steps)
        )

    def _check_complete(self, assignment: Assignment, done: TurnDone) -> None:
        applied = self._logs.of(assignment).done
        if self.is_silent(assignment):  # the server has no part in the steps
            applied = assignment.steps
        number = self._number_of(assignment)
        if done.turn != number or applied != assignment.steps:
            raise ProtocolError(
                f"turn {number} has {assignment.steps} steps, {applied} are "
                f"done; got the end of turn {done.turn}",
                code="out-of-order",
            )
        hands_on = self.contract.side_travels and assignment.steps > 0
        if hands_on and not done.side:
            raise ProtocolError("shared heads need a sealed side", code="out-of-order")
        if done.side and not hands_on:
            where = (
                "after an evaluation" if self.contract.side_travels else "in this run"
            )
            raise ProtocolError(
                f"no side travels {where}, got {len(done.side)} bytes of one",
                code="too-large",
            )

    def _count(self, assignment: Assignment) -> None:
        """Count the time and the steps of the current assignment."""
        now = time.monotonic()
        self.progress.seconds += now - self._clock
        self._clock = now
        if assignment.steps:
            samples = self._samples(assignment)
            self.progress.note_turn(assignment.client, assignment.steps, samples)
            self._boundary.number += 1

    def _note(self, assignment: Assignment, member: Member, done: TurnDone) -> None:
        """Keep the side and the figures that a client hands in."""
        if done.side:
            self._boundary.sealed_side = done.side
        if done.loss is not None and assignment.steps:
            samples = self._samples(assignment)
            member.loss = done.loss
            self.progress.note_loss(done.loss * samples, samples)
        if assignment.evaluate and done.figures:
            figures = self._figures(member, done)
            self._reports.append(Report(figures, done.samples, member.name))

    def _samples(self, assignment: Assignment) -> int:
        """Return the samples that the server trained on; where none are seen, steps."""
        if self.contract.is_silent:
            return assignment.steps
        return self._logs.of(assignment).samples

    def is_silent(self, assignment: Assignment) -> bool:
        """Return whether a client sends nothing in the steps of a turn."""
        return not step_kinds(self.contract, assignment.turn.phase)

    def _figures(self, member: Member, done: TurnDone) -> Figures:
        """Return the test figures of a client by name."""
        names = (LOSS, *self.contract.metrics)
        if len(done.figures) != len(names):
            raise ProtocolError(
                f"{member.name}: expected the figures {', '.join(names)}, got "
                f"{len(done.figures)} numbers",
                code="contract-mismatch",
            )
        return dict(zip(names, done.figures, strict=True))

    def _pass_boundary(self, assignment: Assignment) -> None:
        if self._reports:
            evaluation = mean_evaluation(self._reports)
            self._reports = []
            counts = self._roster.bytes_by_kind()
            self.state.remember(assignment.turn, evaluation, counts)
        self._finish_if_over()
        if self.finished is None and self._is_save_due(assignment, self.progress.steps):
            self.save()

    def _is_save_due(self, assignment: Assignment, steps: int) -> bool:
        return is_due(
            self.plan.checkpoint_every,
            steps,
            assignment.turn.steps,
            is_evaluated=assignment.evaluate or assignment.turn.ends_early_epoch,
        )

    def _finish_if_over(self) -> None:
        reason = self.state.stop_reason
        if reason is not None:
            self.save()
            self.turns.end()
            self.finished = self._boundary.finished(reason)
