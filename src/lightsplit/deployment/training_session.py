"""The server's end of one client's connection that trains.

    Ready ─► [wait] ─► Grant ─► messages of the turn ─► TurnDone ─► [wait] ─► Grant …
    Ready or TurnDone ─► [wait] ─► Finished ─► Heard

A wait ends when the client's turn begins, when the run is over, or when the connection
ends.
"""

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.handshake import check_ready, expect
from lightsplit.deployment.roster import Member
from lightsplit.deployment.run_control import RunControl, stopping
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Message, Reply, Request
from lightsplit.protocol.control import Finished, Grant, Heard, Ready, TurnDone
from lightsplit.transports import Peer


class TrainingSession:
    """Answers a client that has been admitted; callers hold the lock.

    Args:
        control: of the run.
        member: the client.
        peer: its connection.
    """

    def __init__(self, control: RunControl, member: Member, peer: Peer) -> None:
        self._control = control
        self._run = control.run
        self._member = member
        self._peer = peer
        self._assignment: Assignment | None = None
        self._is_ready = False
        self._answered: tuple[Request, Reply] | None = None

    def handle(self, message: Message) -> Message | None:
        """Return the reply to a message; None after the last one."""
        if not self._is_ready:
            self._register(expect(Ready, message))
            return self._next()
        if self._assignment is None:
            self._note_told(expect(Heard, message))
            return None
        self._control.check_connected(self._member, self._peer)
        self._control.check_current(self._assignment)
        if isinstance(message, TurnDone):
            self._complete(self._assignment, message)
            return self._next()
        request = step_of(self._member, message)
        self._control.note_step()
        reply = self._run.answer(self._assignment, request)
        self._answered = request, reply
        return reply

    def replied(self) -> None:
        """Finish a step while its reply is on its way, and perhaps pass the turn on."""
        if self._answered is None or self._assignment is None:
            return
        self._member.meter.count(*self._answered)
        self._answered = None
        self._run.settle()
        control = self._control
        if not control.wants_stop and self._run.start_next_early(self._assignment):
            control.pass_on()

    def close(self) -> None:
        """Finish the last step and undo an open one, unless a newer session took over.

        The client may be gone before it has read the last reply.
        """
        self.replied()
        if self._member.peer is self._peer:
            self._control.disconnect(self._member)

    def _register(self, ready: Ready) -> None:
        member, control = self._member, self._control
        check_ready(member.name, member.batches, ready)
        member.batches = ready.batches
        self._is_ready = True
        if not self._run.turns.is_begun:
            control.begin_if_ready()
            if self._run.turns.is_begun:
                control.pass_on()

    def _complete(self, assignment: Assignment, done: TurnDone) -> None:
        """Accept the turn, after the one before it if that is late."""
        while self._run.turns.oldest is not assignment:
            self._member.wake.wait()
            self._control.check_connected(self._member, self._peer)
            self._control.check_current(assignment)
        self._run.complete(assignment, self._member, done)
        self._control.pass_on()

    def _next(self) -> Grant | Finished:
        """Wait for the client's next turn, or the end of the run."""
        while True:
            self._control.check_connected(self._member, self._peer)
            if self._control.is_over:
                self._assignment = None
                return farewell(self._control, self._member)
            assignment = self._run.turns.of(self._member.index)
            if assignment is not None:
                self._assignment = assignment
                return self._grant(assignment)
            self._member.wake.wait()

    def _grant(self, assignment: Assignment) -> Grant:
        self._peer.allow_sides()
        grant = self._run.grant(assignment)
        self._member.meter.add("hand_off", len(grant.side))
        return grant

    def _note_told(self, _heard: Heard) -> None:
        self._control.note_told(self._member)


def farewell(control: RunControl, member: Member) -> Finished:
    """Return the message that ends the run; raise if the server may come back."""
    finished = control.finished
    if finished is None:
        raise stopping()
    member.meter.add("hand_off", len(finished.side))
    return finished


def step_of(member: Member, message: Message) -> Request:
    """Return ``message`` if it belongs to a step of ``member``; raise otherwise."""
    if not isinstance(message, Request):
        raise ProtocolError(
            f"expected a step, got {type(message).__name__}", code="out-of-order"
        )
    member.check_sender(message)
    return message
