"""The server's end of one connection, from its Hello to its end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lightsplit.deployment.agreement_session import AgreementSession
from lightsplit.deployment.door import SECONDS_AT_THE_DOOR, Door
from lightsplit.deployment.handshake import check_hello, expect
from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.deployment.prediction_session import PredictionSession
from lightsplit.deployment.prediction_share import PredictionShare
from lightsplit.deployment.roster import Member
from lightsplit.deployment.round_control import RoundControl
from lightsplit.deployment.round_session import RoundSession
from lightsplit.deployment.run_control import RunControl, stopping
from lightsplit.deployment.training_session import TrainingSession
from lightsplit.errors import CodecError, ExchangeError, FormatError, ProtocolError
from lightsplit.protocol import Message
from lightsplit.protocol.control import Grant, Hello, Welcome
from lightsplit.protocol.phases import LOCAL
from lightsplit.transports import Peer, Session

_ERRORS_OF_THE_CLIENT = (ExchangeError, CodecError, FormatError)


class ClientSession:
    """Admits a client and hands its messages to the session that it asked for.

    A session runs in a thread of its own and holds the run's lock while it computes or
    changes anything. An error that the client has not caused ends the run; the client
    is told that the server stops, and nothing more.

    Args:
        control: of the run.
        idle: runs while the server waits for the client.
        share: of the server's time that predictions get.
        door: counts the streams of this client.
        peer: the connection, which the door has let in.
    """

    def __init__(
        self,
        control: RunControl,
        idle: IdleTimeout,
        share: PredictionShare,
        door: Door,
        peer: Peer,
    ) -> None:
        self._control = control
        self._idle = idle
        self._share = share
        self._door = door
        self._peer = peer
        self._admitted: Session | None = None
        self._predicts_as: int | None = None
        idle.start(peer, SECONDS_AT_THE_DOOR)

    def handle(self, message: Message) -> Message | None:
        """Return the reply to a message; None after the last one."""
        self._idle.stop(self._peer)
        if self._admitted is None:
            self._door.hear(self._peer)
        with self._own_errors_end_the_run(), self._its_turn(), self._control.lock:
            if self._admitted is None:
                reply: Message | None = self._greet(expect(Hello, message))
            else:
                reply = self._admitted.handle(message)
        self._idle.start(self._peer, moves=self._moves(reply))
        return reply

    def _moves(self, reply: Message | None) -> int:
        """Return how many moves a client makes before its next message."""
        if not isinstance(reply, Grant):
            return 1
        is_silent = reply.phase == LOCAL or self._control.run.contract.is_silent
        return max(reply.steps, 1) if is_silent else 1

    def replied(self) -> None:
        """Do the work that can wait until the reply is on its way."""
        with self._own_errors_end_the_run(), self._control.lock:
            if self._admitted is not None:
                self._admitted.replied()

    def close(self) -> None:
        """Leave the run; the client may come back on another connection."""
        self._idle.stop(self._peer)
        self._door.leave(self._peer)
        with self._own_errors_end_the_run(), self._control.lock:
            if self._admitted is not None:
                self._admitted.close()

    def _its_turn(self) -> AbstractContextManager[None]:
        """Wait until a prediction may take the run's lock; training need not wait."""
        if self._predicts_as is None:
            return nullcontext()
        return self._share.turn(self._predicts_as)

    @contextmanager
    def _own_errors_end_the_run(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS_OF_THE_CLIENT:
            raise
        except Exception as error:
            with self._control.lock:
                self._control.fail(error)
            raise stopping() from error

    def _greet(self, hello: Hello) -> Welcome:
        run, roster = self._control.run, self._control.roster
        check_hello(hello, self._peer, run.contract)
        if hello.purpose == "loop":
            raise ProtocolError(
                "this server grants turns, which 'lightsplit join' takes; got a client "
                "with a loop of its own, for which 'lightsplit.host' serves",
                code="out-of-order",
            )
        if hello.purpose == "predict":
            member = roster.find(hello.name)
            self._admitted = PredictionSession(run, member)
            self._predicts_as = member.index
            return run.welcome_to_predict(member.index)
        member = roster.admit(hello.name)
        if hello.purpose == "agree":
            self._peer.when_gone(lambda: self._wake(member))
            self._admitted = AgreementSession(self._control, member, self._peer)
            return Welcome(member.index, run.run)
        self._take_over(member)
        self._admitted = self._training(member)
        member.meter.add("setup", len(run.contract.to_json().encode()))
        return Welcome(member.index, run.run)

    def _training(self, member: Member) -> Session:
        if isinstance(self._control, RoundControl):
            return RoundSession(self._control, member, self._peer)
        return TrainingSession(self._control, member, self._peer)

    def _take_over(self, member: Member) -> None:
        """Make this the client's connection; end an older one and undo its step."""
        self._peer.when_gone(lambda: self._wake(member))
        former, member.peer = member.peer, self._peer
        if former is None:
            return
        self._control.undo(member)
        if self._idle.is_running(former):
            former.cancel()
        member.wake.notify_all()  # an older session that waits finds out, and says why

    def _wake(self, member: Member) -> None:
        with self._control.lock:
            member.wake.notify_all()
