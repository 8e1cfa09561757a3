"""The client's end of a networked run: wait for a turn, take it, hand the side on.

The same ``Client`` object as in one process; its ``send`` goes through here. What
breaks is mended where it broke: a lost reply is asked for again, a lost connection is
opened again, and where the server has gone back to an earlier boundary, the worker goes
there too (``TurnLostError``) and repeats from it. All randomness derives from (seed,
client, step), so what is repeated comes out the same.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lightsplit.errors import ConfigError, ProtocolError, RunError, TransportError
from lightsplit.protocol import (
    CodeMessage,
    Contract,
    Message,
    OutputGradient,
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
from lightsplit.results import atomic, tensors
from lightsplit.runtime import BatchSource, Client
from lightsplit.training.evaluation import LabelledBatches, evaluate
from lightsplit.transports import ByteMeter, through
from lightsplit.transports.sealing import SealingKey

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0


class Line(Protocol):
    """A connection to the server."""

    def call(self, message: Message) -> Message:
        """Return the reply; raise TransportError when asking again may help."""
        ...

    def finish(self, last: Message) -> None:
        """Send a message that has no reply, and end the connection in good order."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Source(BatchSource, Protocol):
    """Batches of one client, with how many there are per epoch."""

    def __len__(self) -> int: ...


class TurnLostError(Exception):
    """The server is not where this turn left it; ``order`` is what it wants now."""

    def __init__(self, order: Grant | Finished) -> None:
        super().__init__(order)
        self.order = order


class SideStore:
    """A client's own sides by step, on its own disk (private heads)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, step: int, blob: bytes) -> None:
        """Keep the side as it is before ``step``."""
        atomic.write_bytes(self._file(step), blob, is_secret=True)

    def load(self, step: int) -> bytes:
        """Return the side as it was before ``step``."""
        try:
            return self._file(step).read_bytes()
        except FileNotFoundError as error:
            raise RunError(
                f"the server wants to go on from step {step}, but {self._folder} "
                "does not hold the side of that step"
            ) from error

    def forget_before(self, step: int) -> None:
        """Drop sides that the server will not ask for any more."""
        for path in self._folder.glob("side-*.safetensors"):
            if int(path.stem.removeprefix("side-")) < step:
                path.unlink(missing_ok=True)

    def _file(self, step: int) -> Path:
        return self._folder / f"side-{step:08d}.safetensors"


class Worker:
    """Takes a client's turns until the run is over.

    Args:
        client: as in one process; its ``send`` is replaced by this worker's.
        contract: as this client understands it.
        name: of the client, as in its certificate.
        connect: opens a new connection.
        batches: makes the batches once the server has said which client this is.
        key: of the hand-offs; needed with shared heads.
        store: for a private side, or the residual of one that travels in int8; needed
            where there is one or the other.
        test: batches of a test set, if there is one.
        reports: whether losses and accuracies are told to the server.
        watch: is told of every order.
        away: is told each time that the server could not be reached and will be tried
            again.
        meter: counts this client's bytes.
        give_up_seconds: how long to try to reach the server again.
    """

    def __init__(  # noqa: PLR0913
        self,
        client: Client,
        contract: Contract,
        *,
        name: str,
        connect: Callable[[], Line],
        batches: Callable[[int], Source],
        key: SealingKey | None = None,
        store: SideStore | None = None,
        test: LabelledBatches | None = None,
        reports: bool = True,
        watch: Callable[[Grant | Finished], None] = lambda _order: None,
        away: Callable[[TransportError], None] = lambda _error: None,
        meter: ByteMeter | None = None,
        give_up_seconds: float = 600.0,
    ) -> None:
        self._client = client
        self._contract = contract
        self._name = name
        self._connect = connect
        self._make_batches = batches
        self._key = key
        self._store = store
        self._test = test
        self._reports = reports
        self._watch = watch
        self._away = away
        self._give_up_seconds = give_up_seconds
        self._line: Line | None = None
        self._batches: Source | None = None
        self._run = ""
        self._order: Grant | None = None
        self._code: CodeMessage | None = None
        self._is_clean = True
        self._initial = tensors.to_bytes(client.side.state())
        self._meter = meter or ByteMeter()
        if self.travels and key is None:
            raise ConfigError(
                "shared heads travel sealed: a key is needed, the same at every client "
                "('lightsplit keys FILE' makes one, --key takes it)"
            )
        if self._keeps_residual and store is None:
            raise ConfigError("hand-offs in int8 leave a residual: a folder is needed")
        client.send = through(self._meter, self.send)

    @property
    def travels(self) -> bool:
        """Say whether the side goes from client to client."""
        return self._contract.heads == "shared" and self._contract.clients > 1

    @property
    def _keeps_residual(self) -> bool:
        return self.travels and self._client.hand_off.keeps_residual

    def run(self) -> Finished:
        """Take turns until the server says that the run is over."""
        try:
            order = self._reach()
            while isinstance(order, Grant):
                self._watch(order)
                try:
                    order = self._take(order)
                except TurnLostError as lost:
                    order = lost.order
            self._watch(order)
            if self.travels:
                self._take_over(order.side, order.turn)
            if self._line is not None:
                self._line.finish(Heard())
            return order
        finally:
            if self._line is not None:
                self._line.close()

    def send(self, request: Request) -> Reply:
        """Carry a message of a step to the server, over as many connections as needed.

        Raises:
            TurnLostError: the server has gone back, or on, to something else.
        """
        if isinstance(request, CodeMessage) and request.is_training:
            self._code = request
        attempt = request
        while True:
            try:
                reply = self._call(attempt)
                if attempt is request:
                    return reply  # type: ignore[return-value]
                attempt = request
            except TransportError:
                self._come_back()
                # A step that was broken off is undone there: its code comes first.
                needs_code = isinstance(request, OutputGradient) and self._code
                attempt = self._code if needs_code and self._code else request

    def _take(self, order: Grant) -> Grant | Finished:
        self._enter(order)
        assert self._batches is not None  # noqa: S101
        report = self._client.run_turn(self._batches, order.steps)
        accuracy = test_loss = loss = None
        if order.evaluate and self._test is not None:
            evaluation = evaluate([self._client], self._test)
            accuracy, test_loss = evaluation.accuracy, evaluation.loss
        if order.steps:
            loss = report.loss_sum / report.samples
        if not self._reports:
            accuracy = test_loss = loss = None
        side = self._hand_on(order.turn) if self.travels else b""
        if self._store is not None and order.steps:
            self._keep(self._store)
        self._is_clean = True
        self._meter.add("hand_off", len(side))
        return self._hand_in(TurnDone(order.turn, side, loss, accuracy, test_loss))

    def _hand_in(self, done: TurnDone) -> Grant | Finished:
        """Give the turn back; a new order may show that it was taken before."""
        while True:
            try:
                return self._ordered(done)
            except TransportError:
                order = self._reach()
                if not self._continues(order):
                    return order

    def _enter(self, order: Grant) -> None:
        """Bring the side to where the turn begins."""
        self._order = order
        client = self._client
        if self.travels:
            # Only the very first turn starts from the first weights: an empty side
            # later on does not open.
            if order.turn:
                self._take_over(order.side, order.turn - 1)
            else:
                self._load(self._initial)
        if not self._is_clean or client.steps != order.first_step:
            self._bring_back(order.first_step)
        if self._store is not None:
            self._store.forget_before(order.oldest_step)
        client.steps = order.first_step
        self._is_clean = False

    def _keep(self, store: SideStore) -> None:
        """Save what does not travel: a private side, or a residual."""
        if not self.travels:
            store.save(self._client.steps, tensors.to_bytes(self._client.side.state()))
        elif self._keeps_residual:
            store.save(self._client.steps, tensors.to_bytes(self._client.residual))

    def _bring_back(self, step: int) -> None:
        """Take what did not travel as it was before ``step``."""
        if not self.travels:
            self._load(self._kept(step) if step else self._initial)
        elif self._keeps_residual:
            self._client.residual = tensors.from_bytes(self._kept(step)) if step else {}

    def _kept(self, step: int) -> bytes:
        if self._store is None:
            raise RunError(f"the side of step {step} was not kept")
        return self._store.load(step)

    def _load(self, blob: bytes) -> None:
        self._client.side.load(tensors.from_bytes(blob))

    def _take_over(self, sealed: bytes, turn: int) -> None:
        """Go on with the side that ``turn`` left."""
        self._client.take_over(tensors.from_bytes(self._unseal(sealed, turn)))

    def _hand_on(self, turn: int) -> bytes:
        return self._seal(tensors.to_bytes(self._client.hand_on()), turn)

    def _seal(self, blob: bytes, turn: int) -> bytes:
        return self._sealing_key.seal(
            blob, run=self._run, turn=turn, contract=self._contract.digest
        )

    def _unseal(self, sealed: bytes, turn: int) -> bytes:
        return self._sealing_key.open(
            sealed, run=self._run, turn=turn, contract=self._contract.digest
        )

    @property
    def _sealing_key(self) -> SealingKey:
        assert self._key is not None  # noqa: S101
        return self._key

    def _call(self, message: Message) -> Message:
        if self._line is None:
            raise TransportError("not connected")
        return self._line.call(message)

    def _come_back(self) -> None:
        """Connect again and see that the turn can go on where it is."""
        order = self._reach()
        if not self._continues(order):
            raise TurnLostError(order)

    def _continues(self, order: Grant | Finished) -> bool:
        mine = self._order
        if mine is None or not isinstance(order, Grant):
            return False
        done = self._client.steps - mine.first_step
        same = (order.turn, order.steps, order.first_step) == (
            mine.turn,
            mine.steps,
            mine.first_step,
        )
        return same and order.done in (done, done + 1)

    def _reach(self) -> Grant | Finished:
        """Connect, with growing pauses, and return what the server wants now."""
        deadline = time.monotonic() + self._give_up_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._introduce()
            except TransportError as error:
                if time.monotonic() + pause > deadline:
                    raise
                self._away(error)
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _introduce(self) -> Grant | Finished:
        if self._line is not None:
            self._line.close()
        self._line = self._connect()
        hello = Hello(self._name, self._contract.to_json())
        welcome = self._call(hello)
        if not isinstance(welcome, Welcome):
            raise ProtocolError(f"expected a welcome, got {type(welcome).__name__}")
        self._meter.add("setup", len(hello.contract.encode()))
        self._take_place(welcome.run, welcome.index)
        assert self._batches is not None  # noqa: S101
        return self._ordered(Ready(len(self._batches)))

    def _ordered(self, message: Ready | TurnDone) -> Grant | Finished:
        """Say that this client is free and return what the server wants next."""
        order = self._call(message)
        if not isinstance(order, Grant | Finished):
            raise ProtocolError(f"expected an order, got {type(order).__name__}")
        self._meter.add("hand_off", len(order.side))
        return order

    def _take_place(self, run: str, index: int) -> None:
        """Be the client that the server says; once there was a turn, no other one."""
        mine = (self._run, self._client.index)
        if self._order is not None and mine != (run, index):
            raise ProtocolError(
                f"this client is number {mine[1]} in run {mine[0]}; "
                f"the server says number {index} in run {run}"
            )
        if index >= self._contract.clients:
            raise ProtocolError(
                f"expected an index below {self._contract.clients}, got {index}"
            )
        if self._batches is None or mine[1] != index:
            self._batches = self._make_batches(index)
        self._run, self._client.index = run, index
