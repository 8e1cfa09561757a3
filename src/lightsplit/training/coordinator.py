"""The server's end of a networked run: which message may reach the server, and when.

The same ``Server`` object as in one process. Turns are transactions
(``turns.TurnLog``); a step that was broken off is undone. Between two turns the server
may save itself: started again, it stands at the last saved boundary, and the clients go
back to it too.

Every session runs in a thread of its own and holds the lock while anything is computed
or changed. A client that waits for its turn sleeps until it is woken.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    Message,
    OutputGradient,
    Reply,
)
from lightsplit.protocol.control import (
    Finished,
    Grant,
    Hello,
    Ready,
    TurnDone,
    Welcome,
)
from lightsplit.results import tensors
from lightsplit.runtime import Server
from lightsplit.training import checkpoint
from lightsplit.training.evaluation import mean_evaluation
from lightsplit.training.membership import Member, Membership
from lightsplit.training.progress import Progress
from lightsplit.training.schedule import Schedule
from lightsplit.training.turns import Order, OrderBook, TurnLog
from lightsplit.transports import Peer

M = TypeVar("M")


@dataclass(frozen=True)
class Plan:
    """How long to train and when to look up.

    Attributes:
        turn_steps, epochs, max_steps: as of Schedule.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        checkpoint_every: steps between checkpoints; 0 is at each evaluation.
        step_timeout_seconds: a client in turn that is silent for longer loses its
            connection; its open step is undone, and it may come back.
    """

    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0
    eval_every: int = 0
    patience: int = 0
    checkpoint_every: int = 0
    step_timeout_seconds: float = 60.0


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
    """

    def __init__(
        self,
        server: Server,
        contract: Contract,
        plan: Plan,
        *,
        run: str,
        folder: Path,
        names: list[str] | None = None,
    ) -> None:
        self.contract = contract
        self.plan = plan
        self.run = run
        self.progress = Progress(client_steps=[0] * contract.clients)
        self.finished: Finished | None = None
        self._lock = threading.RLock()
        self._over = threading.Condition(self._lock)
        self.members = Membership(contract.clients, self._lock, names)
        self._server = server
        self._folder = folder
        self._book: OrderBook | None = None
        is_u = contract.topology == "u"
        self._log = TurnLog(last_kind=(OutputGradient if is_u else CodeMessage).kind)
        self._side = b""
        self._saved_steps = [0] * contract.clients
        self._reports: list[TurnDone] = []
        self._heard = self._clock = time.monotonic()
        self._wants_stop = self._is_stopped = False
        if checkpoint.exists(folder):
            self._load()

    # The life of the run.

    def wait(self, timeout_seconds: float) -> bool:
        """Wait a little; revoke the turn of a silent client; say whether it is over."""
        with self._lock:
            self._over.wait_for(lambda: self.is_over, timeout_seconds)
            self._revoke_if_silent()
            return self.is_over

    def stop(self) -> None:
        """End the run at the next boundary, saved; it can be gone on with later."""
        with self._lock:
            self._wants_stop = True
            order = self._current()
            if order is None or self.members[order.client].peer is None:
                self._end()

    @property
    def is_over(self) -> bool:
        """Say whether no more turn will be granted."""
        return self.finished is not None or self._is_stopped

    @property
    def has_travelling_side(self) -> bool:
        """Say whether a sealed side goes from client to client."""
        return self.contract.heads == "shared" and self.contract.clients > 1

    def current_order(self) -> Order | None:
        """Return what is being done now, for a display."""
        with self._lock:
            return self._current()

    # A session.

    def session(self, peer: Peer, requests: Iterator[Message]) -> Iterator[Message]:
        """Answer one client from its Hello to its end."""
        hello = _expect(Hello, next(requests, None))
        self._check_hello(peer, hello)
        if hello.purpose == "predict":
            yield from self._predict(hello.name, requests)
            return
        member = self._admit(peer, hello.name)
        try:
            yield Welcome(member.index, self.run)
            self._register(member, _expect(Ready, next(requests, None)))
            while order := self._await_order(member, peer):
                yield self._grant(order, member)
                yield from self._serve(order, member, peer, requests)
            if self.finished is not None:
                yield self.finished
        finally:
            self._leave(member, peer)

    def _check_hello(self, peer: Peer, hello: Hello) -> None:
        if hello.purpose not in ("train", "predict"):
            raise ProtocolError(
                f"unknown purpose {hello.purpose!r}", code="unknown-message"
            )
        if peer.name is not None and hello.name != peer.name:
            raise ProtocolError(
                f"the certificate is {peer.name!r}'s, the client says {hello.name!r}",
                code="unknown-client",
            )
        self.contract.check_same(Contract.from_json(hello.contract))

    def _admit(self, peer: Peer, name: str) -> Member:
        with self._lock:
            member = self.members.find(name)
            if member.peer is not None:
                self._drop(member)
            member.peer = peer
            member.meter.add("setup", len(self.contract.to_json().encode()))
            return member

    def _register(self, member: Member, ready: Ready) -> None:
        with self._lock:
            if ready.batches < 1 or member.batches not in (0, ready.batches):
                raise ProtocolError(
                    f"{member.name} had {member.batches} batches per epoch, "
                    f"now {ready.batches}",
                    code="contract-mismatch",
                )
            member.batches = ready.batches
            if self._book is None and self.members.are_ready:
                self._begin()

    def _await_order(self, member: Member, peer: Peer) -> Order | None:
        with self._lock:
            while True:
                if member.peer is not peer or not peer.is_alive():
                    raise ProtocolError(
                        "the connection was replaced", code="stale-turn"
                    )
                if self.is_over:
                    return None
                order = self._current()
                if order is not None and order.client == member.index:
                    self._heard = time.monotonic()
                    return order
                member.wake.wait(1.0)

    def _grant(self, order: Order, member: Member) -> Grant:
        with self._lock:
            side = self._side if order.number and self.has_travelling_side else b""
            member.meter.add("hand_off", len(side))
            return Grant(
                turn=order.number,
                steps=order.steps,
                done=self._log.done,
                first_step=self.progress.client_steps[order.client],
                oldest_step=self._saved_steps[order.client],
                evaluate=order.evaluate,
                side=side,
            )

    def _serve(
        self, order: Order, member: Member, peer: Peer, requests: Iterator[Message]
    ) -> Iterator[Reply]:
        for message in requests:
            self._heard = time.monotonic()
            if isinstance(message, TurnDone):
                with self._lock:
                    self._check_current(order, member, peer)
                    self._complete(order, member, message)
                return
            with self._lock:
                self._check_current(order, member, peer)
                reply = self._reply(order, member, message)
            yield reply
            with self._lock:
                self._server.settle()
        raise ProtocolError("the client left in its turn", code="stale-turn")

    def _predict(self, name: str, requests: Iterator[Message]) -> Iterator[Message]:
        """Answer codes outside training; nothing of the run is touched."""
        with self._lock:
            member = self.members.find(name)
            turn, side = max(self.progress.turns - 1, 0), self._side
        yield Welcome(member.index, self.run, turn, side)
        for message in requests:
            if not isinstance(message, CodeMessage) or message.is_training:
                raise ProtocolError(
                    "a session for prediction only", code="out-of-order"
                )
            with self._lock:
                reply = member.meter(message, self._server.answer)
            yield reply

    # Below, the lock is held.

    def _check_current(self, order: Order, member: Member, peer: Peer) -> None:
        if member.peer is not peer or self._current() is not order:
            raise ProtocolError(f"turn {order.number} was revoked", code="stale-turn")

    def _reply(self, order: Order, member: Member, message: Message) -> Reply:
        if not isinstance(message, CodeMessage | OutputGradient):
            raise ProtocolError(
                f"expected a step, got {type(message).__name__}", code="out-of-order"
            )
        if message.client != member.index:
            raise ProtocolError(
                f"{member.name} is client {member.index}, not {message.client}",
                code="not-your-turn",
            )
        return member.meter(message, lambda request: self._answer(order, request))

    def _answer(self, order: Order, message: CodeMessage | OutputGradient) -> Reply:
        if isinstance(message, CodeMessage) and not message.is_training:
            return self._server.answer(message)
        first = self.progress.client_steps[order.client]
        if message.step >= first + order.steps:
            raise ProtocolError(
                f"turn {order.number} ends with step {first + order.steps - 1}, "
                f"got step {message.step}",
                code="out-of-order",
            )
        done = self._log.done
        reply = self._log.answer(message, first, self._server.answer)
        if self._log.done > done:
            self.progress.samples += _rows(message)
        return reply

    def _complete(self, order: Order, member: Member, done: TurnDone) -> None:
        if done.turn != order.number or self._log.done != order.steps:
            raise ProtocolError(
                f"turn {order.number} has {order.steps} steps, {self._log.done} are "
                f"done; got the end of turn {done.turn}",
                code="out-of-order",
            )
        if self.has_travelling_side and not done.side:
            raise ProtocolError("shared heads need a sealed side", code="out-of-order")
        self._server.settle()
        member.meter.add("hand_off", len(done.side))
        self._note(order, member, done)
        self._log.clear()
        if self._book is not None:
            self._book.complete()
        if self._book is None or self._book.is_at_boundary:
            self._pass_boundary(order)
        self._wake_current()

    def _note(self, order: Order, member: Member, done: TurnDone) -> None:
        progress, now = self.progress, time.monotonic()
        progress.seconds += now - self._clock
        self._clock = now
        progress.steps += order.steps
        progress.client_steps[order.client] += order.steps
        progress.turns += 1 if order.steps else 0
        progress.last_client = order.client
        progress.bytes = self.members.bytes_by_kind()
        self._side = done.side or self._side
        if done.loss is not None:
            member.loss = done.loss
            progress.loss_sum += done.loss * order.steps
            progress.loss_samples += order.steps
        if order.evaluate and done.accuracy is not None:
            self._reports.append(done)

    def _pass_boundary(self, order: Order) -> None:
        if self._reports:
            evaluation = mean_evaluation(
                [(r.accuracy or 0.0, r.test_loss or 0.0) for r in self._reports]
            )
            self._reports.clear()
            turn = order.turn
            self.progress.remember(turn.epoch + 1, turn.round + 1, evaluation)
        if 0 < self.plan.patience <= self.progress.stale:
            self._finish("patience")
        elif self._current() is None:
            self._finish("schedule")
        elif self._wants_stop:
            self._save()
            self._end()
        elif self._is_save_due(order):
            self._save()

    def _is_save_due(self, order: Order) -> bool:
        if not self.plan.checkpoint_every:
            return order.evaluate
        return self.progress.steps % self.plan.checkpoint_every < max(order.steps, 1)

    def _begin(self) -> None:
        plan = self.plan
        batches = [member.batches for member in self.members]
        self._book = OrderBook(
            Schedule(batches, plan.turn_steps, plan.epochs, plan.max_steps),
            turns=self.progress.turns,
            eval_every=plan.eval_every,
            has_shared_heads=self.contract.heads == "shared",
        )
        self._clock = time.monotonic()
        if self._current() is None:
            self._finish("schedule")
        self._wake_current()

    def _current(self) -> Order | None:
        if self._book is None:
            return None
        progress = self.progress
        return self._book.current(turns=progress.turns, steps=progress.steps)

    def _wake_current(self) -> None:
        order = self._current()
        if order is not None and not self.is_over:
            self.members[order.client].wake.notify_all()

    def _finish(self, reason: str) -> None:
        self._save()
        self.finished = Finished(reason, max(self.progress.turns - 1, 0), self._side)
        self._end()

    def _end(self) -> None:
        self._is_stopped = True
        self._over.notify_all()
        for member in self.members:
            member.wake.notify_all()

    def _save(self) -> None:
        files = {
            "server.safetensors": tensors.to_bytes(self._server.side.state()),
            "side.sealed": self._side,
        }
        content = {
            "contract": self.contract.digest,
            "run": self.run,
            "members": self.members.to_list(),
            "progress": self.progress.to_dict(),
        }
        checkpoint.write(self._folder, self.progress.steps, files, content)
        self._saved_steps = list(self.progress.client_steps)

    def _load(self) -> None:
        newest, content = checkpoint.read(self._folder, self.contract.digest)
        self._server.side.load(tensors.load(newest / "server.safetensors"))
        self._side = (newest / "side.sealed").read_bytes()
        self.run = content["run"]
        self.progress = Progress(**content["progress"])
        self._saved_steps = list(self.progress.client_steps)
        self.members.restore(content["members"])

    def _leave(self, member: Member, peer: Peer) -> None:
        with self._lock:
            if member.peer is peer:
                self._drop(member)

    def _drop(self, member: Member) -> None:
        """End a client's session and undo its open step."""
        peer, member.peer = member.peer, None
        order = self._current()
        if order is not None and order.client == member.index:
            self._server.settle()
            self._server.abandon_step()
            self._log.forget_open_step(self.progress.client_steps[order.client])
            if self._wants_stop:
                self._end()
        if peer is not None:
            peer.cancel()
        member.wake.notify_all()

    def _revoke_if_silent(self) -> None:
        order = self._current()
        if order is None or self.is_over:
            return
        silent = time.monotonic() - self._heard
        member = self.members[order.client]
        if member.peer is not None and silent > self.plan.step_timeout_seconds:
            self._drop(member)


def _expect(kind: type[M], message: object) -> M:
    if not isinstance(message, kind):
        raise ProtocolError(
            f"expected {kind.__name__}, got {type(message).__name__}",
            code="out-of-order",
        )
    return message


def _rows(message: CodeMessage | OutputGradient) -> int:
    if isinstance(message, OutputGradient):
        return len(message.gradient)
    return len(message.code.values)
