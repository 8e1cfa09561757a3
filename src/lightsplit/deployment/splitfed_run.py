"""A networked run of SplitFed at the server.

    begin ─► open ─► steps of each owner ─► shares ─► hand-in ─► [boundary] ─► open …

The rounds are those of ``round_run``, with other messages: an owner's steps are
answered at once, or in v2 when its place in the order has come.
"""

import time

from lightsplit.deployment.local_round import LocalRound
from lightsplit.deployment.local_steps import LocalSteps
from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.roster import Member
from lightsplit.deployment.round_run import RoundRun
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Reply, Request, Share
from lightsplit.protocol.phases import TRAIN, step_kinds
from lightsplit.runs.rounds import Round
from lightsplit.runtime import Pace, Server


class SplitFedRun(RoundRun):
    """Answers owners' steps one by one, and averages at the end of a round.

    Its arguments are those of RoundRun, with a plain server.
    """

    open: LocalRound | None
    _steps: LocalSteps

    def hear(self, member: Member, request: Request) -> Reply | None:
        """Take a message of a round; return None while others are still awaited."""
        opened, pace = self._local(request)
        if request.kind == Share.kind:
            return self._hear_share(opened, member, request)
        client, now = member.index, time.monotonic()
        if not opened.has_finished(client):  # else it can only repeat its steps
            opened.check_member(client, Share.kind)
            opened.note(client, now)
            opened.find_current(now)
            if not opened.may_step(client):
                return None
        with self.computing:
            return self._steps.answer(opened, pace, request)

    def has_gone_on(self, request: Request) -> bool:
        """Return whether a message that has arrived can be answered now."""
        if self.open is None or request.kind == Share.kind:
            return super().has_gone_on(request)
        return self.open.may_step(request.client)

    def advance(self, now: float, *, stops: bool = False) -> set[int]:
        """Do what is due, and wake the owner that is next in the order."""
        woken = super().advance(now, stops=stops)
        current = None if self.open is None else self.open.find_current(now)
        return woken if current is None else woken | {current}

    def at_work(self) -> set[int]:
        """Return the owners that the round waits for; in v2 one after the other."""
        current = None if self.open is None else self.open.current
        return super().at_work() if current is None else {current}

    def _hear_share(
        self, opened: LocalRound, member: Member, request: Request
    ) -> Reply | None:
        client = member.index
        reply = opened.reply(client, Share.kind)
        if reply is not None:
            return reply
        opened.check_member(client, Share.kind)
        if not opened.has_finished(client):
            done, steps = opened.done_steps(client), opened.round.steps_of[client]
            raise ProtocolError(
                f"round {opened.round.number} has {steps} steps of this owner, {done} "
                "are done; got its share",
                code="out-of-order",
            )
        opened.note(client, time.monotonic())
        opened.hear(client, request, time.monotonic())
        return None

    def _local(self, request: Request) -> tuple[LocalRound, Pace]:
        """Return the round of a message, and the position of its steps in the run."""
        opened = self.open
        if opened is None:
            raise ProtocolError(f"round {self.number} is over", code="stale-turn")
        first = self.progress.client_steps[request.client]
        pace = self._grants.pace(opened.round, request.client, first)
        kinds = (*step_kinds(self.contract, TRAIN), Share.kind)
        end = first + pace.steps
        if not first <= request.step < end or request.kind not in kinds:
            raise ProtocolError(
                f"expected {' or '.join(kinds)} of a step from {first} to {end - 1}, "
                f"got {request.kind} of step {request.step}",
                code="out-of-order",
            )
        return opened, pace

    def _make_steps(self, server: Server) -> LocalSteps:
        return LocalSteps(
            server, self.contract, may_undo=self.least < self.contract.clients
        )

    def _make_round(self, round_: Round, invited: set[int], now: float) -> LocalRound:
        self._steps.begin()
        order = [] if self.contract.has_copies else self._grants.order(round_)
        return LocalRound(round_, invited, now, order)

    def _answers(self, opened: OpenRound) -> dict[int, Reply]:
        return self._steps.answers(opened)

    def _is_due(self, now: float) -> bool:
        """Remove a late owner from the order first, then decide as for any round."""
        opened = self.open
        if opened is not None and len(opened.expected) > max(self._least_now, 1):
            late = opened.late(now, self.plan.round_timeout_seconds)
            if late is not None:
                if opened.done_steps(late) or not opened.log(late).is_empty:
                    self._steps.undo(late)
                opened.pass_over(late)
                opened.find_current(now)
        return super()._is_due(now)
