"""A networked run of rounds at the server, with the messages of parallel ones.

    begin ─► open ─► codes ─► gradients ─► [shares] ─► hand-in ─► [boundary] ─► open …

``advance`` moves the round on as far as the messages received, and the time, allow. If
refusals leave a round with too few owners before its update, it begins again, if
possible without the owners that were refused. The run can be saved at a boundary; a
restarted server resumes from the last one it saved, and the owners return to it.

With shared heads, an owner that missed a round needs the newest side: another owner
hands it in, sealed, at the end of the next round. The caller holds the lock.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from lightsplit.deployment.code_count import CodeCount
from lightsplit.deployment.networked_run import NetworkedRun
from lightsplit.deployment.open_round import HAND_IN, OpenRound
from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.round_boundary import RoundBoundary
from lightsplit.deployment.round_grants import RoundGrants
from lightsplit.deployment.round_reports import check_done, evaluated
from lightsplit.deployment.round_restarts import RoundRestarts
from lightsplit.deployment.round_steps import RoundSteps, StageSteps
from lightsplit.deployment.turn_steps import computed
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
from lightsplit.protocol.phases import TRAIN, step_kinds
from lightsplit.runs.checkpoint_folder import is_due
from lightsplit.runs.plan import RunPlan
from lightsplit.runs.rounds import (
    Participation,
    Round,
    drawn_owners,
    rounds,
    with_absent,
)
from lightsplit.runtime import JoiningServer, Server


class RoundRun(NetworkedRun[RoundBoundary]):
    """Opens rounds, answers their messages, and saves the run at boundaries.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        roster: its owners.
        run: its random name.
        folder: for checkpoints; the run resumes from the newest one in it.

    Attributes:
        state: where the run stands.
        open: the round under way, if there is one.
        finished: the message that ends the run, once it is over.
        next_round: the one under way or due; None before and after the run.
        restarts: the owners that made this round begin again.
        codes: counts the distinct codes of evaluations.
    """

    def __init__(
        self,
        server: Server,
        contract: Contract,
        plan: RunPlan,
        roster: Roster,
        *,
        run: str,
        folder: Path,
    ) -> None:
        boundary = RoundBoundary(server.side, contract)
        super().__init__(contract, plan, roster, boundary, run=run, folder=folder)
        self.open: OpenRound | None = None
        self._server = server
        self.codes = CodeCount(server)
        self._steps: StageSteps = self._make_steps(server)
        self._grants = RoundGrants(contract, self.state, self._boundary, self._saved)
        self._grants.every_client_evaluates = plan.every_client_evaluates
        self._participation = Participation(folder.parent / "participation.jsonl")
        self._rounds: Iterator[Round] | None = None
        self.next_round: Round | None = None
        self.restarts = RoundRestarts()
        self._here: set[int] = set()  # owners that are waiting for a round
        self._clock = self._idle_since = time.monotonic()
        if self._saved.exists:
            self._restore()

    def _make_steps(self, server: Server) -> StageSteps:
        """Return the object that answers the messages of a round."""
        assert isinstance(server, JoiningServer)  # noqa: S101  rounds join batches
        return RoundSteps(server, self.contract)

    @property
    def is_begun(self) -> bool:
        """Return whether the first round was opened by this server."""
        return self._rounds is not None

    @property
    def has_begun(self) -> bool:
        """Return whether a round was opened, by this server or an earlier one."""
        return self.is_begun or self._saved.exists

    @property
    def is_at_boundary(self) -> bool:
        """Return whether no round is under way."""
        return self.open is None

    @property
    def number(self) -> int:
        """The number of the round under way, or of the next one."""
        return self._boundary.number

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one; 0 before it."""
        number = self._boundary.number
        if not number:
            return 0, 0
        last = next(rounds(self.state.schedule, number - 1)).turn
        return last.epoch + 1, number

    @property
    def least(self) -> int:
        """How many owners a round needs."""
        every = self.contract.clients
        return min(self.plan.min_clients or every, every)

    def at_work(self) -> set[int]:
        """Return the owners that the round under way waits for."""
        return set() if self.open is None else self.open.missing

    # Owners that come and go.

    def come(self, member: Member) -> None:
        """Note that an owner is waiting; it may still enter a round that has begun."""
        self._here.add(member.index)
        is_drawn = self.plan.owners_per_round > 0
        is_ready = self._boundary.is_ready(member.index)
        may_enter = is_ready and member.index not in self.restarts.owners
        if self.open is not None and may_enter and not is_drawn:
            self.open.invite(member.index)

    def leave(self, member: Member) -> None:
        """Note that an owner has gone; the messages that it sent still count."""
        self._here.discard(member.index)

    def begin_if_ready(self, now: float) -> bool:
        """Begin once all owners are present, or enough have waited long enough."""
        if self.is_begun:
            return False
        are_all = len(self._here) == self.contract.clients
        waited = now - self._idle_since
        if not are_all and (
            len(self._here) < self.least or waited < self.plan.round_timeout_seconds
        ):
            return False
        self.begin()
        return True

    def begin(self) -> None:
        """Make the schedule, and get ready for the round that is next in it."""
        if not self._boundary.batches:
            self._boundary.batches = with_absent(
                [member.batches for member in self._roster], self.contract.clients
            )
        self._make_schedule()
        self._rounds = rounds(self.state.schedule, self._boundary.number)
        self.next_round = next(self._rounds, None)
        self._clock = self._idle_since = time.monotonic()
        self._finish_if_over()
        if self.finished is None and not self._saved.exists:
            self.save()  # a restarted server must know the name and the clients

    def grant_for(self, member: Member) -> Grant | None:
        """Return the round that an owner takes part in; None if it has to wait."""
        opened = self.open
        if opened is None or member.index not in opened.expected:
            return None
        if opened.kind == HAND_IN and member.index in opened.heard:
            return None
        has_late = bool(self._here - opened.invited)
        grant = self._grants.make(opened, member.index, has_late=has_late)
        if grant.evaluate:
            self.codes.begin(member.index)
        return grant

    # The stages of a round.

    def hear(self, member: Member, request: Request) -> Reply | None:
        """Take a message of a round; return None while others are still awaited."""
        opened = self._opened(request)
        if (reply := opened.reply(member.index, request.kind)) is not None:
            return reply
        opened.check_member(member.index, request.kind)
        if member.index not in opened.heard:
            self._steps.check(request)
            opened.hear(member.index, request, time.monotonic())
        return None

    def has_gone_on(self, request: Request) -> bool:
        """Return whether the stage that a message belongs to is already over."""
        return self.open is None or self.open.kind != request.kind

    def hand_in(self, member: Member, done: TurnDone) -> None:
        """Take the end of an owner's round."""
        opened = self.open
        if opened is None or done.turn != opened.round.number:
            raise _stale(done.turn)
        opened.check_member(member.index, HAND_IN)
        check_done(self.contract, member, done, hands_on=member.index == opened.speaker)
        member.meter.add("hand_off", len(done.side))
        opened.hear(member.index, done, time.monotonic())

    def advance(self, now: float, *, stops: bool = False) -> set[int]:
        """Do what is due; return the owners to wake. ``stops`` prevents a new round."""
        woken: set[int] = set()
        while self._is_due(now):
            if self.open is None and stops:
                break
            if self.open is None:
                self._open(now)
            assert self.open is not None  # noqa: S101  it was opened
            woken |= self.open.concerned
            if not self.open.heard:
                continue
            for client, seconds in self.open.waits(now).items():
                self._roster[client].waited_seconds += seconds
            if self.open.kind == HAND_IN:
                self._close(self.open)
            else:
                self._end_stage(self.open, now)
        return woken

    def _end_stage(self, opened: OpenRound, now: float) -> None:
        """Answer a stage; begin the round again if too few of its owners are left."""
        with self.computing:
            replies = self._answers(opened)
        if len(replies) < self._least_now and self._steps.undo_round(opened):
            self.restarts.note(opened.refused)
            self.open = None
            self._idle_since = now
        else:
            opened.close_stage(replies, now)

    def _answers(self, opened: OpenRound) -> dict[int, Reply]:
        """Return the replies to all messages of a stage."""
        number = opened.round.number
        self._server.pace = self._grants.pace(opened.round, None, number)
        return self._steps.answers(opened)

    def waited(self, now: float) -> float:
        """Return for how many seconds nothing has changed; 0 before the run."""
        if not self.is_begun or self.finished is not None:
            return 0.0
        return now - self._idle_since if self.open is None else self.open.waited(now)

    def awaited(self) -> set[int]:
        """Return the owners that the run waits for."""
        known = {member.index for member in self._roster} - self._here
        return self.at_work() if self.open is not None else known

    def _is_due(self, now: float) -> bool:
        if self.next_round is None or self.finished is not None:
            return False
        if self.open is None:
            able = [one for one in self._here if self._boundary.is_ready(one)]
            return len(able) >= self.least
        return self.open.is_complete(
            now, self._least_now, self.plan.round_timeout_seconds
        )

    @property
    def _least_now(self) -> int:
        """How many owners a stage of the round under way needs."""
        return min(self.least, self.plan.owners_per_round or self.least)

    def _open(self, now: float) -> None:
        assert self.next_round is not None  # noqa: S101  it is due
        able = {one for one in self._here if self._boundary.is_ready(one)}
        able = self.restarts.fit(able, self._least_now)
        most, seed = self.plan.owners_per_round, self.contract.seed
        able = drawn_owners(able, most, seed=seed, number=self.next_round.number)
        self.open = self._make_round(self.next_round, able, now)

    def _make_round(self, round_: Round, invited: set[int], now: float) -> OpenRound:
        return OpenRound(round_, step_kinds(self.contract, TRAIN), invited, now)

    def _opened(self, request: Request) -> OpenRound:
        """Return the round that a message belongs to."""
        if self.open is None:
            raise _stale(self._boundary.number)
        steps = self.progress.client_steps[request.client]
        kinds = step_kinds(self.contract, TRAIN)
        if request.step != steps or request.kind not in kinds:
            raise ProtocolError(
                f"expected {' or '.join(kinds)} of step {steps}, got {request.kind} of "
                f"step {request.step}",
                code="out-of-order",
            )
        return self.open

    # The end of a round.

    def _close(self, opened: OpenRound) -> None:
        self._server.settle()
        told: dict[int, TurnDone] = dict(opened.heard)
        opened.end()
        now = time.monotonic()
        self.progress.seconds += now - self._clock
        self._clock = self._idle_since = now
        done = opened.done
        for client in done:
            self._note(opened, client, told[client])
        samples = sum(opened.rows[client] for client in done)
        self.progress.note_round(opened.round.steps_of, done, samples)
        self._participation.add(opened.round.number, opened.attendance)
        self._boundary.number += 1
        is_tested = self._grants.is_tested(opened.round)
        asked = [one for one in done if self._grants.evaluates(opened, one)]
        evaluation = evaluated(self.contract, self._roster, told, asked)
        if evaluation is not None:
            counts = self._roster.bytes_by_kind()
            self.state.remember(opened.round.turn, evaluation, counts)
        self.open = None
        self.restarts.clear()
        assert self._rounds is not None  # noqa: S101  the run has begun
        self.next_round = next(self._rounds, None)
        self._finish_if_over()
        every, steps = self.plan.checkpoint_every, self.progress.place
        has_step = is_due(every, steps, opened.round.steps, is_evaluated=is_tested)
        if self.finished is None and has_step:
            self.save()

    def _note(self, opened: OpenRound, client: int, done: TurnDone) -> None:
        """Keep the side and the training loss that an owner hands in."""
        self._boundary.take(client, opened.round.number, done.side)
        if done.loss is not None:
            rows = opened.rows[client]
            self._roster[client].loss = done.loss
            self.progress.note_loss(done.loss * rows, rows)

    def _finish_if_over(self) -> None:
        reason = self.state.stop_reason
        if reason is not None:
            self.save()
            self.next_round = None
            self.finished = self._boundary.finished(reason)

    def evaluate(self, message: CodeMessage) -> Reply:
        """Return the output for the code of test samples, and count the code."""
        reply = self.infer(message)
        self.codes.add(message)
        return reply

    def infer(self, message: CodeMessage) -> Reply:
        """Return the output for a code outside training; nothing changes."""
        return computed(message, self._server.answer)

    def infer_encrypted(self, _message: EncryptedCode) -> EncryptedOutput:
        """Refuse an encrypted code: a run of rounds has none."""
        raise ProtocolError("this server reads codes", code="refused")

    def settle(self) -> None:
        """Do the work that was left until the replies were on their way."""
        with self.computing:
            self._steps.settle()

    def save(self) -> None:
        """Write a checkpoint; only at a boundary."""
        self._participation.sync()
        self._saved.save(self.run)

    def close(self) -> None:
        """Forget the round under way."""
        self.open = None

    def _restore(self) -> None:
        self.run = self._saved.restore()
        self._participation.go_back(self._boundary.number)
        self._make_schedule()
        self.state.schedule.check_reaches(self.progress.place)

    def _make_schedule(self) -> None:
        self.state.schedule = self.plan.schedule(self._boundary.batches)


def _stale(number: int) -> ProtocolError:
    return ProtocolError(f"round {number} is over", code="stale-turn")
