"""The server's end of a networked run: which message may reach the server, and when.

    session:  Hello ─► [door] ─► wait for an order ─► Grant ─► messages of the turn ─► …

``course.Course`` knows what the run wants next; here it is decided who may speak to it.
Every session runs in a thread of its own and holds the lock while anything is computed
or changed. A client that waits for its turn sleeps until it is woken: by its turn, by
the run's end, or by its connection's.

When the run is over the server stays until every client has said that it heard of it,
or for ``step_timeout_seconds``: one that was cut off then can still come back for it.
"""

import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    Message,
    Reply,
    Request,
)
from lightsplit.protocol.control import (
    Finished,
    Grant,
    Heard,
    Hello,
    Ready,
    TurnDone,
    Welcome,
)
from lightsplit.runtime import Server
from lightsplit.training.admission import check_hello, check_ready
from lightsplit.training.course import Course
from lightsplit.training.guard import Guard
from lightsplit.training.membership import Member, Membership
from lightsplit.training.plan import Plan
from lightsplit.training.progress import Progress
from lightsplit.training.silence import Silence
from lightsplit.training.turns import Order
from lightsplit.transports import Peer

M = TypeVar("M")


class Coordinator:
    """Answers the sessions of all clients of one run.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        run: its random name.
        folder: for checkpoints; the newest one in it is gone on from.
        names: the clients that may join, in the order of their turns; without it
            whoever comes first, until there are enough.
        guard: watches the clients.
    """

    def __init__(  # noqa: PLR0913
        self,
        server: Server,
        contract: Contract,
        plan: Plan,
        *,
        run: str,
        folder: Path,
        names: list[str] | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.contract = contract
        self.plan = plan
        self._lock = threading.RLock()
        self._over = threading.Condition(self._lock)
        self.members = Membership(contract.clients, self._lock, names)
        self._course = Course(
            server,
            contract,
            plan,
            self.members,
            run=run,
            folder=folder,
            guard=guard,
        )
        self._silence = Silence()
        self._wants_stop = self._is_stopped = False
        self._ended = 0.0

    # The life of the run.

    def wait(self, timeout_seconds: float) -> bool:
        """Wait a little; cut off who is silent; say whether the server may go."""
        with self._lock:
            self._over.wait_for(lambda: self.may_close, timeout_seconds)
            for peer in self._silence.longer_than(self.plan.step_timeout_seconds):
                self._cut_off(peer)
            return self.may_close

    def stop(self) -> None:
        """End the run at the next boundary, saved; it can be gone on with later."""
        with self._lock:
            self._wants_stop = True
            if not self._course.is_begun and self.members.are_ready:
                self._course.begin()  # it may have been over when it was loaded
            self._stop_if_idle()
            self._over.notify_all()

    def close(self) -> None:
        """Let go of what is held for clients that might have come back."""
        with self._lock:
            self._course.close()

    @property
    def progress(self) -> Progress:
        """How far the run has come."""
        with self._lock:
            self._course.count_bytes()
            return self._course.progress

    @property
    def guard(self) -> Guard | None:
        """What watches the clients, if anything does."""
        return self._course.guard

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one."""
        with self._lock:
            return self._course.position

    @property
    def finished(self) -> Finished | None:
        """What the clients are told at the end of the run, once it is there."""
        return self._course.finished

    @property
    def is_over(self) -> bool:
        """Say whether no more turn will be granted."""
        return self.finished is not None or self._is_stopped

    @property
    def may_close(self) -> bool:
        """Say whether nobody needs this server any more."""
        if not self.is_over:
            return False
        stays = self.plan.step_timeout_seconds - (time.monotonic() - self._ended)
        has_news = any(not member.is_told for member in self.members)
        return self._is_stopped or self._wants_stop or stays < 0 or not has_news

    def current_order(self) -> Order | None:
        """Return what is being done now, for a display."""
        with self._lock:
            return self._course.current()

    # A session.

    def session(self, peer: Peer, requests: Iterator[Message]) -> Iterator[Message]:
        """Answer one client from its Hello to its end."""
        return self._silence.timed(self._talk, peer, requests)

    def _talk(
        self, peer: Peer, requests: Iterator[Message]
    ) -> Generator[Message, None, None]:
        hello = _expect(Hello, next(requests, None))
        check_hello(hello, peer, self.contract)
        if hello.purpose == "predict":
            yield from self._predict(hello.name, requests)
            return
        member = self._admit(peer, hello.name)
        try:
            yield Welcome(member.index, self._course.run)
            self._register(member, _expect(Ready, next(requests, None)))
            while order := self._await_order(member, peer):
                peer.allow_sides()
                yield self._grant(order, member)
                yield from self._serve(order, member, peer, requests)
            yield self._farewell(member)
            if (last := next(requests, None)) is not None:
                _expect(Heard, last)
                self._note_told(member)
        finally:
            self._leave(member, peer)

    def _admit(self, peer: Peer, name: str) -> Member:
        with self._lock:
            member = self.members.admit(name)
            peer.when_gone(lambda: self._wake(member))
            former, member.peer = member.peer, peer
            if former is not None:
                self._undo(member)
                self._send_away(former, member)
            member.meter.add("setup", len(self.contract.to_json().encode()))
            return member

    def _register(self, member: Member, ready: Ready) -> None:
        with self._lock:
            check_ready(member.name, member.batches, ready)
            member.batches = ready.batches
            if not self._course.is_begun and self.members.are_ready:
                self._course.begin()
                self._pass_on()

    def _await_order(self, member: Member, peer: Peer) -> Order | None:
        with self._lock:
            while True:
                self._check_connected(member, peer)
                if self.is_over:
                    return None
                if order := self._course.order_of(member.index):
                    return order
                member.wake.wait()

    def _wake(self, member: Member) -> None:
        with self._lock:
            member.wake.notify_all()

    def _grant(self, order: Order, member: Member) -> Grant:
        with self._lock:
            grant = self._course.grant(order)
            member.meter.add("hand_off", len(grant.side))
            return grant

    def _serve(
        self, order: Order, member: Member, peer: Peer, requests: Iterator[Message]
    ) -> Iterator[Reply]:
        for message in requests:
            with self._lock:
                self._check_connected(member, peer)
                self._check_current(order)
                if isinstance(message, TurnDone):
                    self._await_former(order, member, peer)
                    self._course.complete(order, member, message)
                    self._pass_on()
                    return
                request = _step_of(member, message)
                reply = self._course.answer(order, request)
            try:
                yield reply
            finally:  # what follows can be done while the reply is on its way
                with self._lock:
                    member.meter.count(request, reply)
                    self._course.settle()
                    if not self._wants_stop and self._course.go_on(order):
                        self._pass_on()
        raise ProtocolError("the client left in its turn", code="stale-turn")

    def _farewell(self, member: Member) -> Finished:
        with self._lock:
            if self.finished is None:
                raise ProtocolError(
                    "the server stops and may come back", code="shutting-down"
                )
            member.meter.add("hand_off", len(self.finished.side))
            return self.finished

    def _note_told(self, member: Member) -> None:
        with self._lock:
            member.is_told = True
            self._over.notify_all()

    def _predict(self, name: str, requests: Iterator[Message]) -> Iterator[Message]:
        """Answer codes outside training; nothing of the run is touched."""
        with self._lock:
            member = self.members.find(name)
            welcome = self._course.welcome_to_predict(member.index)
        yield welcome
        for message in requests:
            if not isinstance(message, CodeMessage) or message.is_training:
                raise ProtocolError(
                    f"expected a code outside training, got {type(message).__name__}",
                    code="out-of-order",
                )
            with self._lock:
                reply = self._course.infer(message)
            yield reply

    # Below, the lock is held.

    def _check_connected(self, member: Member, peer: Peer) -> None:
        if member.peer is not None and member.peer is not peer:
            raise ProtocolError(
                f"a newer connection under the name {member.name!r} took over",
                code="refused",
            )
        if member.peer is None or not peer.is_alive():
            raise ProtocolError("the connection was cut off", code="stale-turn")

    def _await_former(self, order: Order, member: Member, peer: Peer) -> None:
        """Wait until the turn before is handed in too, should it be late."""
        while self._course.oldest is not order:
            member.wake.wait()
            self._check_connected(member, peer)
            self._check_current(order)

    def _check_current(self, order: Order) -> None:
        if self.is_over or self._course.order_of(order.client) is not order:
            raise ProtocolError(f"turn {order.number} was revoked", code="stale-turn")

    def _pass_on(self) -> None:
        """Wake whoever is next, or all if there is nothing left to wait for."""
        if self._wants_stop and self._course.is_at_boundary:
            self._stop_now()
        if self.is_over:
            self._end()
            return
        if self._wants_stop:
            self._stop_if_idle()
        order = self._course.current()
        if order is not None:
            self.members[order.client].wake.notify_all()

    def _stop_if_idle(self) -> None:
        """Stop where no client is at work; an unfinished turn is gone back from."""
        order = self._course.oldest
        if self.is_over:
            return
        if order is None or self.members[order.client].peer is None:
            self._stop_now()
            self._end()

    def _stop_now(self) -> None:
        if self._course.is_begun and self._course.is_at_boundary:
            self._course.save()
        self._is_stopped = True

    def _end(self) -> None:
        self._ended = time.monotonic()
        self._over.notify_all()
        for member in self.members:
            member.wake.notify_all()

    def _leave(self, member: Member, peer: Peer) -> None:
        with self._lock:
            if member.peer is peer:
                member.peer = None
                self._undo(member)

    def _cut_off(self, peer: Peer) -> None:
        for member in self.members:
            if member.peer is peer:
                member.peer = None
                self._undo(member)
        peer.cancel()

    def _undo(self, member: Member) -> None:
        """Undo the open step of a client whose connection is no more."""
        if order := self._course.order_of(member.index):
            self._course.abandon(order)
            if self._wants_stop:
                self._stop_if_idle()

    def _send_away(self, former: Peer, member: Member) -> None:
        """End a session that was replaced; one that waits is told so, and why."""
        if self._silence.is_waited_for(former):
            former.cancel()
        member.wake.notify_all()


def _expect(kind: type[M], message: object) -> M:
    if not isinstance(message, kind):
        raise ProtocolError(
            f"expected {kind.__name__}, got {type(message).__name__}",
            code="out-of-order",
        )
    return message


def _step_of(member: Member, message: Message) -> Request:
    """Return a message of a step, if that is what ``member`` sent."""
    if not isinstance(message, Request):
        raise ProtocolError(
            f"expected a step, got {type(message).__name__}", code="out-of-order"
        )
    if message.client != member.index:
        raise ProtocolError(
            f"{member.name} is client {member.index}, not {message.client}",
            code="not-your-turn",
        )
    return message
