"""The course of a networked run at the server: orders, steps, boundaries, checkpoints.

    begin ─► current order ─► grant ─► answer … answer ─► complete ─► [boundary] ─► …
                                 ▲                │
                                 └── abandon ◄────┘  (the client is gone)

The same ``Server`` object as in one process. A turn is a transaction
(``turns.TurnLog``); a step that was broken off is undone. At a boundary, between two
turns, all can be saved: started again, a server stands at the last one that it saved,
the first of all included, and the clients go back to it too.

Nothing here knows of connections or threads: whoever calls holds the lock.
"""

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from lightsplit.errors import ConfigError, LightSplitError, ProtocolError, RunError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    OutputGradient,
    Reply,
    Request,
)
from lightsplit.protocol.control import Finished, Grant, TurnDone, Welcome
from lightsplit.results import tensors
from lightsplit.runtime import Server, State
from lightsplit.training import checkpoint, snapshot
from lightsplit.training.evaluation import mean_evaluation
from lightsplit.training.guard import Guard
from lightsplit.training.membership import Member, Membership
from lightsplit.training.progress import Progress
from lightsplit.training.schedule import Schedule
from lightsplit.training.turns import Order, OrderBook, TurnLog


@dataclass(frozen=True)
class Plan:
    """How long to train and when to look up.

    Attributes:
        turn_steps, epochs, max_steps: as of Schedule.
        eval_every: rounds between evaluations; 0 is once per epoch.
        patience: evaluations without a new best before stopping; 0 is never.
        checkpoint_every: steps between checkpoints; 0 is at each evaluation.
        step_timeout_seconds: a client that keeps the server waiting for longer loses
            its connection; its open step is undone, and it may come back. So long the
            server also stays at the end for clients that have not heard of it.
    """

    turn_steps: int = 1
    epochs: int = 1
    max_steps: int = 0
    eval_every: int = 0
    patience: int = 0
    checkpoint_every: int = 0
    step_timeout_seconds: float = 60.0


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
        self._log = TurnLog(last_kind=(OutputGradient if is_u else CodeMessage).kind)
        self._side = b""
        self._number = 0  # of the next turn; those that were undone are not counted
        self._saved_steps = [0] * contract.clients
        self._reports: list[TurnDone] = []
        self._clock = 0.0
        if checkpoint.exists(folder):
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
        return self._book is None or (self._book.is_at_boundary and self._log.is_empty)

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
        if self.finished is None and not checkpoint.exists(self._folder):
            self.save()  # from here on the run has its name, and each client its place

    def current(self) -> Order | None:
        """Return what is being done now."""
        if self._book is None or self.finished is not None:
            return None
        progress = self.progress
        return self._book.current(turns=self._number, steps=progress.steps)

    def grant(self, order: Order) -> Grant:
        """Return the order as it is told to its client."""
        if self.guard is not None and order.steps and self._log.is_empty:
            self.guard.begin(order.client, self._capture)
        return Grant(
            turn=order.number,
            steps=order.steps,
            done=self._log.done,
            first_step=self.progress.client_steps[order.client],
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
        first = self.progress.client_steps[order.client]
        if message.step >= first + order.steps:
            raise ProtocolError(
                f"turn {order.number} ends with step {first + order.steps - 1}, "
                f"got step {message.step}",
                code="out-of-order",
            )
        return self._log.answer(message, first, self._compute)

    def infer(self, message: CodeMessage) -> Reply:
        """Return the output for a code outside training; nothing is changed."""
        return self._compute(message)

    def settle(self) -> None:
        """Do what the server put off until its reply was on its way."""
        self._server.settle()
        self._log.lay_aside()

    def abandon(self, order: Order) -> None:
        """Undo the open step of a client that is gone."""
        self._server.settle()
        self._server.abandon_step()
        self._log.forget_open_step(self.progress.client_steps[order.client])

    def complete(self, order: Order, member: Member, done: TurnDone) -> None:
        """Take a turn back; at a boundary evaluate, finish or save what is due."""
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
        files = {
            "server.safetensors": tensors.to_bytes(self._server.side.state()),
            "side.sealed": self._side,
        }
        if self.guard is not None:
            files["guard.safetensors"] = tensors.to_bytes(self.guard.state())
        content = {
            "contract": self.contract.digest,
            "run": self.run,
            "number": self._number,
            "members": self._members.to_list(),
            "progress": self.progress.to_dict(),
        }
        checkpoint.write(self._folder, self.progress.steps, files, content)
        self._saved_steps = list(self.progress.client_steps)

    def close(self) -> None:
        """Let go of what an unfinished turn was told; nobody will ask any more."""
        self._log.clear()

    @property
    def _last_turn(self) -> int:
        return max(self._number - 1, 0)

    def _schedule(self) -> Schedule:
        plan = self.plan
        batches = [member.batches for member in self._members]
        return Schedule(batches, plan.turn_steps, plan.epochs, plan.max_steps)

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

    def _note(self, order: Order, member: Member, done: TurnDone) -> None:
        progress, now = self.progress, time.monotonic()
        progress.seconds += now - self._clock
        self._clock = now
        progress.steps += order.steps
        progress.samples += self._log.samples
        progress.client_steps[order.client] += order.steps
        progress.turns += 1 if order.steps else 0
        self._number += 1 if order.steps else 0
        progress.last_client = order.client
        self._side = done.side or self._side
        if done.loss is not None and order.steps:
            member.loss = done.loss
            progress.loss_sum += done.loss * self._log.samples
            progress.loss_samples += self._log.samples
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
        if self.finished is None and self._is_save_due(order):
            self.save()

    def _is_save_due(self, order: Order) -> bool:
        if not self.plan.checkpoint_every:
            return order.evaluate
        return self.progress.steps % self.plan.checkpoint_every < order.turn.steps

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
        newest, content = checkpoint.read(self._folder, self.contract.digest)
        clients = self.contract.clients
        self.progress = Progress.from_dict(content.get("progress"), clients=clients)
        try:
            self.run = str(content["run"])
            self._members.restore(content["members"])
            self._side = (newest / "side.sealed").read_bytes()
            self._number = int(content.get("number", self.progress.turns))
        except (KeyError, TypeError, AttributeError, FileNotFoundError) as error:
            raise RunError(
                f"{newest} is not a server's checkpoint: {error!r}"
            ) from error
        self._server.side.load(tensors.load(newest / "server.safetensors"))
        if self.guard is not None:
            self.guard.load(tensors.load(newest / "guard.safetensors"))
        self._saved_steps = list(self.progress.client_steps)
        if self._members.are_ready:
            self._check_not_beyond(self._schedule().total_steps)

    def _check_not_beyond(self, total: int) -> None:
        """Refuse to call a run shorter than it already is."""
        steps = self.progress.steps
        if steps > total:
            raise ConfigError(
                f"the run is at step {steps}, beyond the {total} asked for"
            )
