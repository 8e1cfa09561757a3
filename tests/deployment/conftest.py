"""A networked run without sockets: a server that counts, and lines that break."""

import queue
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lightsplit.codecs import CODECS, Code
from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.roster import Roster
from lightsplit.deployment.server_run import ServerRun
from lightsplit.errors import LightSplitError, ProtocolError, TransportError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Contract,
    OutputGradient,
    OutputMessage,
)
from lightsplit.protocol.control import Hello, Ready, Refusal, TurnDone
from lightsplit.protocol.frames import error_of, refusal_of
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import Client, ClientSide, Server, ServerSide
from lightsplit.transports import Peer

NAMES = ["alice", "bob", "carol"]


def make_contract(**terms):
    known = {
        "model": "small",
        "cut": "",
        "topology": "u",
        "heads": "shared",
        "activation_shape": (4,),
        "output_shape": (4,),
        "codec": "raw",
        "codec_options": {},
        "code_size": 4,
        "fingerprint": "",
        "seed": 0,
        "clients": 3,
        "batch_size": 4,
        "turn_steps": 1,
    }
    return Contract(**(known | terms))


class CountingServer:
    """Applies steps to a list and nothing else; an answer tells how many there were."""

    def __init__(self):
        self.applied, self.open = [], None
        reads = {"read_code": lambda sent: sent.code, "rows": lambda code: code.values}
        self.wire = codec = SimpleNamespace(**reads)
        self.side = SimpleNamespace(state=self._state, load=self._load, codec=codec)
        self.side.check_finite = int

    def answer(self, request):
        key, count = (request.client, request.step), float(len(self.applied))
        if isinstance(request, OutputGradient):
            if self.open != key:
                raise ProtocolError(f"{key} has sent no code")
            return self._apply(request)
        if self.open is not None:
            raise ProtocolError(f"{self.open} is open")
        if request.labels is not None:
            return self._apply(request)
        if request.is_training:
            self.open = key
        return OutputMessage(*key, Code(torch.tensor([[count, *key]])))

    def settle(self):
        pass

    def abandon_step(self):
        self.open = None

    def _apply(self, request):
        key, self.open = (request.client, request.step), None
        self.applied.append(key)
        return CodeGradient(*key, torch.tensor([[float(len(self.applied)), *key]]))

    def _state(self):
        return {"applied": torch.tensor([(-1, -1), *self.applied])}

    def _load(self, state):
        self.applied = [tuple(pair) for pair in state["applied"].tolist()[1:]]


def code(client, step, *, topology="u", **more):
    labels = torch.zeros(2, dtype=torch.int64) if topology == "vanilla" else None
    return CodeMessage(client, step, Code(torch.zeros(2, 4)), labels, **more)


def gradient(client, step):
    return OutputGradient(client, step, torch.zeros(2, 4))


def make_run(
    folder,
    batches=(2, 1, 2),
    *,
    server=None,
    plan=None,
    has_begun=True,
    name="run",
    **terms,
):
    """Return a run with a server that counts."""
    names = NAMES[: len(batches)]
    lock = threading.RLock()
    roster = Roster(len(batches), lock, names)
    run = ServerRun(
        server or CountingServer(),
        make_contract(clients=len(batches), **terms),
        plan or RunPlan(turn_steps=terms.get("turn_steps", 1)),
        roster,
        run=name,
        folder=folder,
    )
    for member, count in zip(roster, batches, strict=True):
        member.batches = count
    run.members, run.lock = roster, lock
    if has_begun:
        run.begin()
    return run


def make_peer(**more):
    """Return a connection that stands."""
    return Peer(None, lambda: None, lambda: True, **more)


def take_turn(line, order):
    """Do the steps of a grant and return the next instruction."""
    for step in range(order.first_step, order.first_step + order.steps):
        line.call(code(line.index, step))
        line.call(gradient(line.index, step))
    return line.call(TurnDone(order.turn, loss=0.5))


class DirectLine:
    """A session of a coordinator in the caller's own thread.

    ``breaks`` says for each call whether it breaks "before" or "after" the message
    reached the server; the server notices at once, or only when the client comes back.
    """

    def __init__(self, coordinator, name=None, breaks=lambda: None):
        self._is_alive = True
        self._breaks = breaks
        self._when_gone = []
        self.peer = Peer(
            name, self._cancel, lambda: self._is_alive, self._when_gone.append
        )
        self._session = coordinator.session(self.peer)
        self._is_closed = False

    def call(self, message):
        fault = self._breaks()
        if fault == "before":
            self.close()
            raise TransportError("broken before")
        answer = self._answer(message)
        if fault == "after":
            self.close()
        if fault in ("after", "unnoticed") or answer is None:
            raise TransportError("broken after")
        if isinstance(answer, Refusal):
            raise error_of(answer)
        return answer

    def finish(self, last):
        assert self._answer(last) is None

    def end(self):
        """End the stream in good order without a last word."""
        self._close_session()

    def close(self):
        self._cancel()
        self._close_session()

    def _answer(self, message):
        if self._is_closed or not self._is_alive:
            return None
        try:
            answer = self._session.handle(message)
        except LightSplitError as error:
            self._close_session()
            return refusal_of(error)
        self._session.replied()
        if answer is None:
            self._close_session()
        return answer

    def _close_session(self):
        if not self._is_closed:
            self._is_closed = True
            self._session.close()

    def _cancel(self):
        self._is_alive = False
        for call in self._when_gone:
            call()


class LiveLine:
    """A session in a thread of its own, which works on when it has answered."""

    def __init__(self, coordinator, name):
        self._requests, self._answers = queue.Queue(), queue.Queue()
        self._is_alive = True
        self._when_gone = []
        self.peer = Peer(
            name, self._cancel, lambda: self._is_alive, self._when_gone.append
        )
        self._thread = threading.Thread(target=self._talk, args=(coordinator,))
        self._thread.start()

    def send(self, message):
        self._requests.put(message)

    def receive(self, timeout_seconds=120):
        answer = self._answers.get(timeout=timeout_seconds)
        if isinstance(answer, Refusal):
            raise error_of(answer)
        return answer

    def call(self, message):
        self.send(message)
        return self.receive()

    @property
    def is_waiting(self):
        """Say whether no answer comes, now or in a moment."""
        time.sleep(0.05)
        return self._answers.empty()

    def close(self):
        self._cancel()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _cancel(self):
        self._is_alive = False
        for call in self._when_gone:
            call()
        self._requests.put(None)

    def _talk(self, coordinator):
        session = coordinator.session(self.peer)
        try:
            for message in iter(self._requests.get, None):
                self._answers.put(session.handle(message))
                session.replied()
        except LightSplitError as error:
            self._answers.put(refusal_of(error))
        finally:
            session.close()


class Script:
    """A line whose answers are given."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.heard = []
        self.last = None
        self.is_closed = False

    def call(self, message):
        self.heard.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def finish(self, last):
        self.last = last

    def close(self):
        self.is_closed = True


class Ends:
    """A small model with BatchNorm on both sides, as one process and as many build it.

    Every instance is the same: its randomness is its own.
    """

    optimizer = partial(torch.optim.Adam, lr=1e-2)

    def __init__(self, *, topology="u", batches=(3, 2, 3), **terms):
        self.topology = topology
        self.contract = make_contract(topology=topology, **terms)
        self.batches = [Batches(count, seed) for seed, count in enumerate(batches)]
        self.codec = CODECS.create("raw", shape=(4,))
        with torch.random.fork_rng():
            torch.manual_seed(5)
            head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
            backbone = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4))
            tail = nn.Linear(4, 3)
        is_u = topology == "u"
        self.server = Server(
            ServerSide(
                backbone, self.codec, self.optimizer, tail=None if is_u else tail
            )
        )
        self.side = ClientSide(head, tail if is_u else None, self.codec, self.optimizer)

    def client_with(self, side, index):
        return Client(side, self.server.handle, index=index)


class Batches:
    """The same samples at every asking."""

    def __init__(self, count, seed):
        self._count = count
        self._seed = seed

    def __len__(self):
        return self._count

    def batch(self, step):
        generator = torch.Generator().manual_seed(1000 * self._seed + step)
        inputs = torch.rand(4, 3, generator=generator)
        return inputs, torch.randint(3, (4,), generator=generator)


@pytest.fixture(name="make_contract")
def _make_contract():
    return make_contract


@pytest.fixture
def net():
    """Everything above, by name."""
    return SimpleNamespace(
        NAMES=NAMES,
        CountingServer=CountingServer,
        DirectLine=DirectLine,
        LiveLine=LiveLine,
        Script=Script,
        Ends=Ends,
        code=code,
        gradient=gradient,
        make_contract=make_contract,
        make_peer=make_peer,
        make_run=make_run,
        take_turn=take_turn,
    )


@pytest.fixture
def make_coordinator(net, tmp_path):
    def make(plan=None, names=net.NAMES, server=None, stays=None, **terms):
        return Coordinator(
            server or net.CountingServer(),
            net.make_contract(**terms),
            plan or RunPlan(epochs=2),
            run="run",
            folder=tmp_path,
            names=names,
            stays=stays or (lambda _steps: True),
        )

    return make


@pytest.fixture
def alone(make_coordinator):
    """A run of one client: no one to wait for."""

    def alone(plan=None, **terms):
        return make_coordinator(plan, names=["alice"], clients=1, **terms)

    return alone


@pytest.fixture
def enter(net):
    """Return what brings a client to its turn."""

    def enter(coordinator, name="alice", batches=2):
        line = net.DirectLine(coordinator)
        line.index = line.call(
            Hello(name, coordinator.contract.to_json(), "train")
        ).index
        line.order = line.call(Ready(batches))
        return line

    return enter
