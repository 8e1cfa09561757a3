"""The client's end of a networked run: wait for a turn, take it, hand it in.

    ReconnectingLine   reaches the server, again and again if need be
    SideKeeper         brings the side to the start of a turn, and keeps it afterwards
    Worker             takes the turns

The ``Client`` is the same object as in one process; its messages go through the line.
If the server has returned to an earlier boundary, the worker returns to it too and
repeats the turns from there. All randomness derives from (secret, client, step), so a
repeated step comes out the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from lightsplit.deployment.client_log import ClientLog
from lightsplit.deployment.granted import check_grant
from lightsplit.deployment.join_options import JoinOptions, TurnFigures
from lightsplit.deployment.reconnecting import (
    Instruction,
    Line,
    ReconnectingLine,
    TurnLostError,
)
from lightsplit.deployment.round_sides import RoundSides
from lightsplit.deployment.side_keeper import SideKeeper
from lightsplit.errors import ProtocolError, TransportError
from lightsplit.protocol import Contract, Reply, Request
from lightsplit.protocol.control import Finished, Grant, Hello, TurnDone, Welcome
from lightsplit.runs.evaluation import LOSS, LabelledBatches, measure
from lightsplit.runtime import (
    Averaging,
    BatchSource,
    Client,
    OnceClient,
    Pace,
    ReleaseBudget,
    ReleaseLog,
    TurnReport,
    WeightAveraging,
)
from lightsplit.transports import Tape, through


class Source(BatchSource, Protocol):
    """Batches of one client; their number is that of an epoch."""

    def __len__(self) -> int: ...


class Worker:
    """Takes a client's turns until the run is over.

    Args:
        client: as in one process; the worker replaces its ``send``.
        contract: as this client understands it.
        name: of the client, as in its certificate.
        connect: opens a new connection.
        batches: makes the batches once the server has said which client this is.
        options: of the client.
    """

    def __init__(
        self,
        client: Client,
        contract: Contract,
        *,
        name: str,
        connect: Callable[[], Line],
        batches: Callable[[int], Source],
        options: JoinOptions,
    ) -> None:
        self._client = client
        self._contract = contract
        self._make_batches = batches
        self._options = options
        self._batches: Source | None = None
        self._run = ""
        self._grant: Grant | None = None
        self._late: Grant | None = None  # the grant whose end came too late to count
        self._averaging: Averaging | None = None
        self._furthest: int | None = None  # step since this process was started
        self._sides: SideKeeper | RoundSides = SideKeeper(client, contract, options)
        if contract.averages_side:
            self._sides = RoundSides(client, contract, options)
            self._averaging = self._make_averaging()
        self._log = ClientLog(
            options.state_folder,
            allows_rollback=options.allows_rollback,
            in_rounds=contract.has_rounds,
        )
        hello = Hello(name, contract.to_json())
        self._line = ReconnectingLine(
            connect, hello, self._take_place, options, in_rounds=contract.has_rounds
        )
        if isinstance(client, OnceClient):
            client.releases = ReleaseLog(options.state_folder)
        client.send = through(options.meter, self.send)
        self._budget = self._make_budget()
        if self._budget is not None:
            client.send = through(self._budget, client.send)
        if options.records:
            client.send = through(Tape(options.tape), client.send)

    def run(self) -> Finished:
        """Take turns until the server says that the run is over."""
        try:
            instruction = self._line.reach()
            while isinstance(instruction, Grant):
                self._check(instruction)
                self._note(instruction)
                self._options.watch(instruction)
                try:
                    instruction = self._take(instruction)
                except TurnLostError as lost:
                    turn, steps = instruction.turn, self._client.steps
                    self._log.note("lost", self._run, turn, steps)
                    instruction = lost.instruction
            self._note(instruction)
            self._options.watch(instruction)
            done = self._log.steps_in(self._run)
            self._sides.finish(instruction, self._run, done)
            if self._late is not None:
                self._sides.take_back(self._late)
            self._options.ended(instruction)
            self._line.finish()
            return instruction
        finally:
            self._line.close()

    def send(self, request: Request) -> Reply:
        """Carry a message of a step to the server, over as many lines as needed.

        Raises:
            TurnLostError: the server has left this turn for another one.
        """
        return self._line.exchange(request, self._goes_on)

    def _make_averaging(self) -> Averaging:
        """Let the client average gradients (in SplitFed, weights) with the others."""
        key, size = self._options.key, self._contract.batch_size
        assert key is not None  # noqa: S101  a round's sides need one
        if self._contract.is_parallel:
            self._client.averaging = Averaging(key, size)
            return self._client.averaging
        self._client.weight_averaging = WeightAveraging(key, size)
        return self._client.weight_averaging

    def _make_budget(self) -> ReleaseBudget | None:
        """Return a budget for the releases of codes, if a promise depends on them."""
        releases = self._client.side.releases
        if releases is None or isinstance(self._client, OnceClient):
            return None
        log = ReleaseLog(self._options.state_folder)
        return ReleaseBudget(log, releases, partial(self._counted_steps, releases))

    def _counted_steps(self, releases: int) -> int:
        """Return the steps in which each sample is sent ``releases`` times."""
        return releases * (0 if self._batches is None else len(self._batches))

    def _take(self, grant: Grant) -> Instruction:
        self._grant, self._late = grant, None
        self._sides.enter(grant, self._run)
        assert self._batches is not None  # noqa: S101  the server has granted a turn
        self._client.pace = Pace(
            grant.first_step,
            grant.steps,
            grant.run_step,
            grant.run_steps,
            grant.phase,
            grant.done,
        )
        if isinstance(self._client, OnceClient):
            self._client.tested = grant.tested
        if self._averaging is not None:
            self._averaging.run, self._averaging.number = self._run, grant.turn
        report = self._client.run_turn(self._batches, grant.steps)
        grant = self._grant  # the server may have granted the same turn again
        self._log.note("done", self._run, grant.turn, self._client.steps)
        done = self._done(grant, report)
        self._options.meter.add("hand_off", len(done.side))
        return self._hand_in(done)

    def _check(self, grant: Grant) -> None:
        """Refuse a turn that cannot be this client's."""
        if self._grant is not None:
            self._furthest = max(self._furthest or 0, self._client.steps)
        batches = 0 if self._batches is None else len(self._batches)
        check_grant(grant, self._contract, batches=batches, steps=self._furthest)

    def _note(self, instruction: Instruction) -> None:
        """Log where the server stands, and warn the owner if it went back."""
        steps = None
        if isinstance(instruction, Grant):
            steps = instruction.first_step + instruction.done
        event = "finished" if steps is None else "granted"
        warning = self._log.note(event, self._run, instruction.turn, steps)
        if warning is not None:
            self._options.went_back(warning)

    def _done(self, grant: Grant, report: TurnReport) -> TurnDone:
        """Return the end of a turn, with the figures that the client reports."""
        loss = report.loss_sum / report.samples if report.samples else None
        figures, samples = dict[str, float](), 0
        if grant.evaluate and self._options.test is not None:
            figures, samples = self._evaluate(self._options.test)
        side = self._sides.leave(grant, self._run)
        steps, objectives = self._client.steps, report.objective_means
        self._options.turned(TurnFigures(grant.turn, steps, loss, figures, objectives))
        if not self._options.reports:
            return TurnDone(grant.turn, side)
        return TurnDone(grant.turn, side, loss, tuple(figures.values()), samples)

    def _evaluate(self, test: LabelledBatches) -> tuple[dict[str, float], int]:
        """Return the loss and the metrics in the order of the contract, and samples."""
        if self._budget is not None:
            self._budget.begin_evaluation()
        found = measure(self._client, test, self._options.scoring)
        names = (LOSS, *self._contract.metrics)
        return {name: found.figures[name] for name in names}, found.samples

    def _hand_in(self, done: TurnDone) -> Instruction:
        """Hand the turn in; after a broken line the server may have it already."""
        while True:
            try:
                return self._line.ask(done)
            except TransportError as error:
                instruction = self._line.reach()
                if not self._is_same_turn(instruction):
                    is_late = error.code == "stale-turn" and self._contract.has_rounds
                    self._late = self._grant if is_late else None
                    return instruction

    def _goes_on(self, instruction: Instruction) -> bool:
        """Return whether a turn goes on after a new connection, and note its new grant.

        In rounds another owner may by now be the one that evaluates and hands on.
        """
        is_same = self._is_same_turn(instruction)
        if is_same and isinstance(instruction, Grant):
            self._grant = instruction
        return is_same

    def _is_same_turn(self, instruction: Instruction) -> bool:
        """Return whether the server still wants the turn that this client is in.

        A server that went back may grant the same turn with another side: those who
        took part in the turns before it may have been others this time.
        """
        mine = self._grant
        if mine is None or not isinstance(instruction, Grant):
            return False
        if _turn_of(instruction) != _turn_of(mine):
            return False
        done = self._client.steps - mine.first_step
        return instruction.done in (done, done + 1)  # the last reply may be lost

    def _take_place(self, welcome: Welcome) -> int:
        """Become the client that the server says, and return its batches per epoch.

        Once this client has had a turn, its run and its place cannot change.
        """
        index, mine = welcome.index, self._client.index
        if self._grant is not None and (self._run, mine) != (welcome.run, index):
            raise ProtocolError(
                f"this client is number {mine} in run {self._run}; "
                f"the server says number {index} in run {welcome.run}"
            )
        if self._options.run not in ("", welcome.run):
            raise ProtocolError(
                f"the clients agreed on a key for run {self._options.run}, but the "
                f"server has begun another run, {welcome.run}: start again"
            )
        if index >= self._contract.clients:
            raise ProtocolError(
                f"expected an index below {self._contract.clients}, got {index}"
            )
        if self._batches is None or mine != index:
            self._batches = self._make_batches(index)
        self._run, self._client.index = welcome.run, index
        return len(self._batches)


def _turn_of(grant: Grant) -> tuple[int, int, int, bytes]:
    return grant.turn, grant.steps, grant.first_step, grant.side
