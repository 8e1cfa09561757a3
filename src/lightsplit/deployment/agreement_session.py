"""The server's end of one client's connection that agrees on a key with the others.

TurnDone(0, offer) ─► [all have] ─► Grant(1, steps 0, all offers)
TurnDone(1, wraps) ─► [all have] ─► Finished("agreed", 1, all wraps) ─► Heard
"""

from lightsplit.deployment.handshake import expect
from lightsplit.deployment.key_board import ROUNDS
from lightsplit.deployment.roster import Member
from lightsplit.deployment.run_control import RunControl, stopping
from lightsplit.errors import ProtocolError
from lightsplit.protocol import Message
from lightsplit.protocol.control import Finished, Grant, Heard, TurnDone
from lightsplit.transports import Peer

AGREED = "agreed"


class AgreementSession:
    """Passes on what clients post for each other; callers hold the lock.

    Args:
        control: of the run.
        member: the client.
        peer: its connection.
    """

    def __init__(self, control: RunControl, member: Member, peer: Peer) -> None:
        self._control = control
        self._member = member
        self._peer = peer
        self._round = 0

    def handle(self, message: Message) -> Message | None:
        """Return what all clients have posted; None after the last message."""
        if self._round == ROUNDS:
            expect(Heard, message)
            return None
        done = expect(TurnDone, message)
        if done.turn != self._round:
            raise ProtocolError(f"expected round {self._round}, got round {done.turn}")
        if self._control.run.has_begun:
            raise ProtocolError(
                "the run has begun, and its key cannot be agreed on again: start with "
                "the folder (--state) that holds this run's key",
                code="refused",
            )
        board, now = self._control.keys, self._round
        board.post(now, self._member.index, done.side)
        if board.is_complete(now):
            for member in self._control.roster:
                member.wake.notify_all()
        while not board.is_complete(now):
            self._member.wake.wait()
            self._check_goes_on()
        self._round += 1
        if self._round < ROUNDS:
            return Grant(self._round, steps=0, first_step=0, side=board.joined(now))
        return Finished(AGREED, now, board.joined(now))

    def replied(self) -> None:
        """Do nothing: a post leaves no work behind."""

    def close(self) -> None:
        """Do nothing: the post stays for the others."""

    def _check_goes_on(self) -> None:
        if self._control.is_over or self._control.wants_stop:
            raise stopping()
        if not self._peer.is_alive():
            raise ProtocolError("the connection was cut off", code="stale-turn")
