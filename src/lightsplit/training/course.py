"""The course of a networked run at the server: orders, steps, boundaries, checkpoints.

    begin ─► current order ─► grant ─► answer … answer ─► complete ─► [boundary] ─► …
                                 ▲                │ └─► go_on ─► the next one is current
                                 └── abandon ◄────┘  (the client is gone)

The same ``Server`` object as in one process. A turn is a transaction
(``turns.TurnLog``); a step that was broken off is undone. At a boundary, between two
turns, all can be saved: started again, a server stands at the last one that it saved,
the first of all included, and the clients go back to it too.

Where no side travels, the next turn needs nothing of the last one's client: it may
begin (``go_on``) while that one still updates and saves its side. The turn is *late*
then. Turns are handed in in their order, so there is never more than one.

Nothing here knows of connections or threads: whoever calls holds the lock.
"""

import time
from itertools import islice
from pathlib import Path

import torch

from lightsplit.errors import LightSplitError, ProtocolError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    OutputGradient,
    Reply,
    Request,
)
from lightsplit.protocol.control import Finished, Grant, TurnDone, Welcome
from lightsplit.runtime import Server, State
from lightsplit.training import server_checkpoint, snapshot
from lightsplit.training.checkpoint import is_due
from lightsplit.training.evaluation import mean_evaluation
from lightsplit.training.guard import Guard
from lightsplit.training.membership import Member, Membership
from lightsplit.training.plan import Plan
from lightsplit.training.progress import Progress
from lightsplit.training.schedule import Schedule
from lightsplit.training.server_checkpoint import ServerState
from lightsplit.training.turns import Order, OrderBook, TurnLogs


class Course:
    """Where a run stands, and what may happen next.

    Args:
        server: the same as in one process.
        contract: of the run.
        plan: of the run.
        members: its clients.
        run: its random name.
        folder: for checkpoints; the newest one in it is gone on from.
        guard: watches the clients.
    """

    def __init__(  # noqa: PLR0913
        self,
        server: Server,
        contract: Contract,
        plan: Plan,
        members: Membership,
        *,
        run: str,
        folder: Path,
        guard: Guard | None = None,
    ) -> None:
        self.contract = contract
        self.plan = plan
        self.run = run
        self.progress = Progress(client_steps=[0] * contract.clients)
        self.finished: Finished | None = None
        self.guard = guard
        self._server = server
        self._members = members
        self._folder = folder
        self._book: OrderBook | None = None
        is_u = contract.topology == "u"
        last_kind = (OutputGradient if is_u else CodeMessage).kind
        self._logs = TurnLogs(last_kind)
        self._side = b""
        self._number = 0  # of the next turn; those that were undone are not counted
        self._saved_steps = [0] * contract.clients
        self._reports: list[TurnDone] = []
        self._clock = 0.0
        if server_checkpoint.exists(folder):
            self._load()

    @property
    def is_begun(self) -> bool:
        """Say whether all clients have come and the first order is given."""
        return self._book is not None

    @property
    def has_travelling_side(self) -> bool:
        """Say whether a sealed side goes from client to client."""
        return self.contract.heads == "shared" and self.contract.clients > 1

    @property
    def is_at_boundary(self) -> bool:
        """Say whether no turn is under way."""
        return self._book is None or (
            self._book.is_at_boundary and self._logs.are_empty
        )

    @property
    def position(self) -> tuple[int, int]:
        """The epoch and the round of the last turn, counted from one; 0 before it."""
        turns = self.progress.turns
        last = next(islice(self._schedule().turns(), max(turns - 1, 0), turns), None)
        return (last.epoch + 1, last.round + 1) if last is not None else (0, 0)

    def begin(self) -> None:
        """Give the first order, or go on where the checkpoint stands."""
        self._book = OrderBook(
            self._schedule(),
            turns=self.progress.turns,
            eval_every=self.plan.eval_every,
            has_shared_heads=self.contract.heads == "shared",
        )
        self._clock = time.monotonic()
        self._finish_if_over()
        if self.finished is None and not server_checkpoint.exists(self._folder):
            self.save()  # from here on the run has its name, and each client its place

    def current(self) -> Order | None:
        """Return what is being done now."""
        if self._book is None or self.finished is not None:
            return None
        progress = self.progress
        return self._book.current(turns=self._number, steps=progress.steps)

    @property
    def oldest(self) -> Order | None:
        """Return what has to be handed in next."""
        return self._logs.late or self.current()

    def order_of(self, client: int) -> Order | None:
        """Return what a client is to do now, if anything."""
        for order in (self._logs.late, self.current()):
            if order is not None and order.client == client:
                return order
        return None

    def grant(self, order: Order) -> Grant:
        """Return the order as it is told to its client."""
        if self.guard is not None and order.steps and self._logs.current.is_empty:
            self.guard.begin(order.client, self._capture)
        return Grant(
            turn=order.number,
            steps=order.steps,
            done=self._logs.of(order).done,
            first_step=self._first_step(order),
            oldest_step=self._saved_steps[order.client],
            evaluate=order.evaluate,
            side=self._side if order.number and self.has_travelling_side else b"",
        )

    def welcome_to_predict(self, index: int) -> Welcome:
        """Return where the run stands, with the newest sealed side."""
        return Welcome(index, self.run, self._last_turn, self._side)

    def answer(self, order: Order, message: Request) -> Reply:
        """Return the reply to a message of the turn, applied once at most."""
        if isinstance(message, CodeMessage) and not message.is_training:
            return self.infer(message)
        first = self._first_step(order)
        if message.step >= first + order.steps:
            raise ProtocolError(
                f"turn {order.number} ends with step {first + order.steps - 1}, "
                f"got step {message.step}",
                code="out-of-order",
            )
        return self._logs.of(order).answer(message, first, self._compute)

    def infer(self, message: CodeMessage) -> Reply:
        """Return the output for a code outside training; nothing is changed."""
        return self._compute(message)

    def settle(self) -> None:
        """Do what the server put off until its reply was on its way."""
        self._server.settle()
        self._logs.current.lay_aside()

    def abandon(self, order: Order) -> None:
        """Undo the open step of a client that is gone; a late turn has none."""
        if order is self._logs.late:
            return
        self._server.settle()
        self._server.abandon_step()
        self._logs.current.forget_open_step(self._first_step(order))

    def go_on(self, order: Order) -> bool:
        """Begin the next turn if the current one is applied and need not be waited for.

        It is waited for where its side travels, a guard judges it, or something is due
        at its end: an evaluation, a checkpoint, the end of the run.
        """
        book = self._book
        if book is None or not self._is_applied(order) or self._is_waited_for(order):
            return False
        self._count(order)
        book.complete()
        self._logs.make_late(order)
        return True

    def complete(self, order: Order, member: Member, done: TurnDone) -> None:
        """Take a turn back; at a boundary evaluate, finish or save what is due."""
        applied = self._logs.of(order).done
        if done.turn != order.number or applied != order.steps:
            raise ProtocolError(
                f"turn {order.number} has {order.steps} steps, {applied} are "
                f"done; got the end of turn {done.turn}",
                code="out-of-order",
            )
        if self.has_travelling_side and not done.side:
            raise ProtocolError("shared heads need a sealed side", code="out-of-order")
        member.meter.add("hand_off", len(done.side))
        self._note(order, member, done)
        if order is self._logs.late:
            self._logs.end(order)
            return
        self._server.settle()
        self._count(order)
        self._logs.end(order)
        if self.guard is not None and order.steps:
            self._rule(order, self.guard)
        if self._book is not None:
            self._book.complete()
        if self.is_at_boundary:
            self._pass_boundary(order)

    def count_bytes(self) -> None:
        """Bring the bytes of all clients up to date; too much to do in every turn."""
        self.progress.bytes = self._members.bytes_by_kind()

    def save(self) -> None:
        """Write a checkpoint; only at a boundary."""
        self.count_bytes()
        state = ServerState(
            self.run,
            self._number,
            self._members.to_list(),
            self.progress,
            self._side,
            server=self._server.side.state(),
            guard=self.guard.state() if self.guard is not None else None,
        )
        server_checkpoint.write(self._folder, self.contract, state)
        self._saved_steps = list(self.progress.client_steps)

    def close(self) -> None:
        """Let go of what unfinished turns were told; nobody will ask any more."""
        self._logs.clear()

    @property
    def _last_turn(self) -> int:
        return max(self._number - 1, 0)

    def _schedule(self) -> Schedule:
        plan = self.plan
        batches = [member.batches for member in self._members]
        return Schedule(batches, plan.turn_steps, plan.epochs, plan.max_steps)

    def _first_step(self, order: Order) -> int:
        """Return the first step of a turn that is under way."""
        counted = order.steps if order is self._logs.late else 0
        return self.progress.client_steps[order.client] - counted

    def _is_applied(self, order: Order) -> bool:
        """Say whether all steps of the current turn are done."""
        return order is self.current() and 0 < order.steps == self._logs.current.done

    def _is_waited_for(self, order: Order) -> bool:
        """Say whether the current turn must be handed in before the next one begins."""
        return (
            self.contract.heads == "shared"
            or self.contract.clients == 1
            or self.guard is not None
            or self._logs.late is not None
            or not (self._book and self._book.ends_turn)
            or self._is_save_due(order, self.progress.steps + order.steps)
        )

    def _compute(self, message: Request) -> Reply:
        """Let the server answer; what its modules cannot compute is refused."""
        try:
            if self.guard is not None:
                return self.guard.collector(message, self._server.answer)
            return self._server.answer(message)
        except LightSplitError:
            raise
        except (RuntimeError, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())
            raise ProtocolError(
                f"{message.kind} of step {message.step} cannot be computed: {reason}",
                code="refused",
            ) from error

    def _count(self, order: Order) -> None:
        """Count what the current order took, and what it applied."""
        now = time.monotonic()
        self.progress.seconds += now - self._clock
        self._clock = now
        if order.steps:
            self.progress.note_turn(
                order.client, order.steps, self._logs.current.samples
            )
            self._number += 1

    def _note(self, order: Order, member: Member, done: TurnDone) -> None:
        """Keep what the client hands in."""
        self._side = done.side or self._side
        if done.loss is not None and order.steps:
            samples = self._logs.of(order).samples
            member.loss = done.loss
            self.progress.note_loss(done.loss * samples, samples)
        if order.evaluate and done.accuracy is not None:
            self._reports.append(done)

    def _rule(self, order: Order, guard: Guard) -> None:
        """Let the guard judge; undo the turn if it says so, the hand-off too."""
        turn, steps = order.turn, self.progress.steps
        ruling = guard.end(
            order.client,
            ends_window=self._schedule().is_evaluated(turn, steps, guard.every),
            capture=self._capture,
        )
        if ruling.verdict is not None:
            self.progress.note_verdict(turn.round + 1, ruling.verdict, ruling.others)
        if ruling.restore is not None:
            self._put_back(ruling.restore)
            self.progress.note_undone(order.client)

    def _capture(self) -> State:
        """Return all that a turn changes, with the number that goes with it."""
        return {
            **snapshot.take({"server": self._server.side}),
            "number": torch.tensor(self._number),
            "side": torch.frombuffer(bytearray(self._side or b"\0"), dtype=torch.uint8),
        }

    def _put_back(self, state: State) -> None:
        """Go back to a state; the next turn has the number that followed it then.

        A seal is bound to its turn's number, so an older side opens only under it.
        """
        snapshot.put_back({"server": self._server.side}, state)
        self._number = int(state["number"])
        self._side = state["side"].numpy().tobytes() if self._number else b""

    def _pass_boundary(self, order: Order) -> None:
        if self._reports:
            evaluation = mean_evaluation(
                [(r.accuracy or 0.0, r.test_loss or 0.0) for r in self._reports]
            )
            self._reports.clear()
            turn = order.turn
            self.count_bytes()
            self.progress.remember(turn.epoch + 1, turn.round + 1, evaluation)
        self._finish_if_over()
        if self.finished is None and self._is_save_due(order, self.progress.steps):
            self.save()

    def _is_save_due(self, order: Order, steps: int) -> bool:
        every = self.plan.checkpoint_every
        return is_due(every, steps, order.turn.steps, is_evaluated=order.evaluate)

    def _finish_if_over(self) -> None:
        if 0 < self.plan.patience <= self.progress.stale:
            self._finish("patience")
        elif self.guard is not None and self.guard.is_stopping:
            self._finish("detector")
        elif self.current() is None:
            self._finish("schedule")

    def _finish(self, reason: str) -> None:
        self.save()
        self.finished = Finished(reason, self._last_turn, self._side)

    def _load(self) -> None:
        saved = server_checkpoint.read(
            self._folder, self.contract, has_guard=self.guard is not None
        )
        self.run, self._number, self._side = saved.run, saved.number, saved.side
        self.progress = saved.progress
        self._members.restore(saved.members)
        self._server.side.load(saved.server)
        if self.guard is not None and saved.guard is not None:
            self.guard.load(saved.guard)
        self._saved_steps = list(self.progress.client_steps)
        if self._members.are_ready:
            self._schedule().check_reaches(self.progress.steps)
