"""The server's end of one owner's connection in a run of parallel rounds.

    Ready ─► [wait] ─► Grant ─► code ─► [wait] ─► output ─► … ─► TurnDone ─► [wait] ─► …

At every message an owner waits for the others in its round. The wait ends with the
reply, with the end of the run or the connection, or when the round continues without
it.
"""

from lightsplit.deployment.handshake import check_ready, expect
from lightsplit.deployment.open_round import OpenRound
from lightsplit.deployment.roster import Member
from lightsplit.deployment.round_control import RoundControl
from lightsplit.deployment.run_control import stopping
from lightsplit.deployment.training_session import farewell, step_of
from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage, Message, Reply, Request
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone
from lightsplit.transports import Peer


class RoundSession:
    """Answers an owner that has been admitted; callers hold the lock.

    Args:
        control: of the run.
        member: the owner.
        peer: its connection.
    """

    def __init__(self, control: RoundControl, member: Member, peer: Peer) -> None:
        self._control = control
        self._run = control.run
        self._member = member
        self._peer = peer
        self._round: OpenRound | None = None  # the round that was granted
        self._is_ready = False
        self._is_over = False
        self._answered: tuple[Request, Reply] | None = None

    def handle(self, message: Message) -> Message | None:
        """Return the reply to a message; None after the last one."""
        if not self._is_ready:
            self._register(expect(Ready, message))
            return self._next()
        if self._is_over:
            expect(Heard, message)
            self._control.note_told(self._member)
            return None
        self._check_connected()
        if isinstance(message, TurnDone):
            self._check_round()
            self._run.hand_in(self._member, message)
            self._run.come(self._member)
            self._control.pass_on()
            return self._next()
        request = step_of(self._member, message)
        self._control.note_step()
        reply = self._reply(request)
        self._answered = request, reply
        return reply

    def replied(self) -> None:
        """Update the weights while replies are on their way."""
        if self._answered is not None:
            self._member.meter.count(*self._answered)
            self._answered = None
            self._run.settle()

    def close(self) -> None:
        """Leave, unless a newer session took over."""
        self.replied()
        if self._member.peer is self._peer:
            self._control.disconnect(self._member)

    def _register(self, ready: Ready) -> None:
        check_ready(self._member.name, self._member.batches, ready)
        self._member.batches = ready.batches
        self._is_ready = True
        self._run.come(self._member)
        self._control.begin_if_ready()
        self._control.pass_on()

    def _reply(self, request: Request) -> Reply:
        """Return the reply to a message of a round once all the others have arrived."""
        while True:
            self._check_round()
            if isinstance(request, CodeMessage) and not request.is_training:
                return self._run.evaluate(request)
            reply = self._run.hear(self._member, request)
            if reply is not None:
                return reply
            self._control.pass_on()
            if self._run.has_gone_on(request):
                continue
            self._member.wake.wait()
            self._check_connected()

    def _next(self) -> Grant | Finished:
        """Wait for the owner's next round or the end of the run."""
        while True:
            self._check_connected()
            if self._control.is_over:
                self._is_over = True
                return farewell(self._control, self._member)
            grant = self._run.grant_for(self._member)
            if grant is not None:
                self._peer.allow_sides()
                self._round = self._run.open
                self._run.leave(self._member)
                self._member.meter.add("hand_off", len(grant.side))
                return grant
            self._member.wake.wait()

    def _check_connected(self) -> None:
        self._control.check_connected(self._member, self._peer)

    def _check_round(self) -> None:
        """Raise unless the round of this owner is still under way."""
        if self._control.is_over and self._control.finished is None:
            raise stopping()
        granted = self._round
        if granted is None:
            raise ProtocolError("no round was granted", code="out-of-order")
        granted.check_not_refused(self._member.index)
        if granted is not self._run.open:
            number = granted.round.number
            raise ProtocolError(f"round {number} is over", code="stale-turn")
