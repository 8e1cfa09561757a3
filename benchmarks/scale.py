"""Many owners at once: parallel rounds against turns, and the cost of a crowd.

    python -m benchmarks.scale            some minutes on a quiet machine
    python -m benchmarks.scale --quick    a smoke test; its figures mean nothing
    python -m benchmarks.scale --part speed

    speed   rounds per second with n owners, parallel / turns. An owner's step takes
            ``DELAY_SECONDS`` longer than its computation, as on a slow device.
    simulation   1,000 owners of one experiment, 50 drawn for each round: what a round
            takes with and without worker processes, in alternation within one run, and
            the memory of one more owner (needs Fashion-MNIST, as ``train`` finds it)
    crowd   1,000 owners, 50 drawn for each round: the server's bookkeeping for one
            round without the model; then with as many real connections, its memory for
            one of them, and its steps per second against one owner (connected_crowd)

Owners of ``speed`` are processes, joined by loopback in plain text, with one thread
each; the model is three small linear layers. Bookkeeping is what the server does
besides computing and sending, and needs no sockets.
"""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from benchmarks.command import print_measured
from benchmarks.connected_crowd import Connected, measure_connected
from benchmarks.simulated_owners import Crowd, simulate
from lightsplit.codecs import CODECS, Code
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.network import join, serve
from lightsplit.deployment.roster import Member, Roster
from lightsplit.deployment.round_run import RoundRun
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Contract,
    OutputGradient,
    OutputMessage,
)
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import Client, ClientSide, JoiningServer, Server, ServerSide

DELAY_SECONDS = 0.5
WIDTH = 32
TARGET = 0.8  # of the number of owners
CROWD, DRAWN = 1000, 50
MOST_BOOKKEEPING_SECONDS = 0.005
SGD = partial(torch.optim.SGD, lr=0.01)


class Size(NamedTuple):
    """How much is measured."""

    owners: tuple[int, ...] = (1, 2, 4, 8, 16)
    rounds: int = 5
    crowd_rounds: int = 50
    connected: Connected = Connected()
    simulated: Crowd = Crowd()


QUICK = Size(
    owners=(1, 2),
    rounds=2,
    crowd_rounds=3,
    connected=Connected(owners=4, drawn=2, rounds=3, alone=3, processes=2, seconds=60),
    simulated=Crowd("digits", owners=20, drawn=4, rounds=1),
)
PARTS = ("speed", "crowd", "simulation")


def measure(
    size: Size = Size(),  # noqa: B008  immutable
    parts: Sequence[str] = PARTS,
) -> dict[str, Any]:
    """Return rounds per second, seconds, bytes and ratios."""
    found: dict[str, Any] = {
        "delay_seconds": DELAY_SECONDS,
        "transport": "gRPC, plain text, loopback, one process each",
    }
    if "speed" in parts:
        found["speed"] = [_speeds(owners, size.rounds) for owners in size.owners]
    if "crowd" in parts:
        found["crowd"] = {
            **_crowd(size.crowd_rounds),
            **measure_connected(size.connected, _terms, _make_server),
        }
    if "simulation" in parts:
        found["simulation"] = simulate(size.simulated)
    return found


def _speeds(owners: int, rounds: int) -> dict[str, Any]:
    found = {kind: _speed(owners, rounds, kind) for kind in ("turns", "parallel")}
    return {
        "owners": owners,
        **{f"{kind}_rounds_per_second": round(v, 3) for kind, v in found.items()},
        "ratio": round(found["parallel"] / found["turns"], 3),
        "target": TARGET * owners,
    }


def _speed(owners: int, rounds: int, kind: str) -> float:
    """Return the rounds per second of a whole run, from its first round to its last."""
    context = multiprocessing.get_context("fork")
    port: Any = context.Value("i", 0)
    work = [
        context.Process(target=_own, args=(index, owners, kind, port))
        for index in range(owners)
    ]
    for process in work:  # before gRPC is used here: it does not survive a fork
        process.start()
    reader, writer = context.Pipe(duplex=False)
    server = context.Process(target=_serve, args=(owners, kind, rounds, port, writer))
    server.start()
    seconds: float = reader.recv()
    for process in (*work, server):
        process.join()
    return rounds / seconds


def _contract(owners: int, kind: str) -> Contract:
    return Contract(
        model="linear",
        cut="",
        topology="u",
        heads="private",
        activation_shape=(WIDTH,),
        output_shape=(WIDTH,),
        codec="raw",
        codec_options={},
        code_size=WIDTH,
        fingerprint="",
        seed=0,
        clients=owners,
        batch_size=8,
        turn_steps=1,
        rounds=kind,
    )


def _terms(owners: int) -> Contract:
    return _contract(owners, "parallel")


def _make_server() -> JoiningServer:
    codec = CODECS.create("raw", shape=(WIDTH,))
    return JoiningServer(ServerSide(nn.Linear(WIDTH, WIDTH), codec, SGD))


def _serve(owners: int, kind: str, rounds: int, port: Any, writer: Any) -> None:
    torch.set_num_threads(1)
    make = JoiningServer if kind == "parallel" else Server
    codec = CODECS.create("raw", shape=(WIDTH,))
    server = make(ServerSide(nn.Linear(WIDTH, WIDTH), codec, SGD))

    def watch(_run: Any, number: int) -> bool:
        port.value = number
        return True

    with tempfile.TemporaryDirectory() as name:
        run = serve(
            server,
            _contract(owners, kind),
            RunPlan(epochs=rounds, eval_every=rounds, checkpoint_every=10**6),
            Endpoint("127.0.0.1:0"),
            Path(name) / "checkpoint",
            watch=watch,
        )
        writer.send(run.progress.seconds)


def _own(index: int, owners: int, kind: str, port: Any) -> None:
    torch.set_num_threads(1)
    codec = CODECS.create("raw", shape=(WIDTH,))
    side = ClientSide(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4), codec, SGD)
    while not port.value:
        time.sleep(0.05)
    with tempfile.TemporaryDirectory() as name:
        join(
            Client(side, _not_connected),
            _contract(owners, kind),
            Endpoint(f"127.0.0.1:{port.value}"),
            name=f"owner-{index}",
            batches=lambda _index: _SlowBatches(),
            options=JoinOptions(state_folder=Path(name)),
        )


class _SlowBatches:
    """One batch per epoch, which takes as long as a slow device's step."""

    def __len__(self) -> int:
        return 1

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(DELAY_SECONDS)
        drawn = torch.Generator().manual_seed(step)
        labels = torch.randint(0, 4, (8,), generator=drawn)
        return torch.randn(8, WIDTH, generator=drawn), labels


def _not_connected(_request: Any) -> Any:
    raise RuntimeError("not connected")


class _Nothing(JoiningServer):
    """Answers with the numbers that came: what is left is bookkeeping."""

    def check(self, request: Any) -> None:
        """Accept everything."""

    def forward_round(self, number: int, requests: Any) -> dict[int, OutputMessage]:
        """Return every code as its output."""
        del number
        self.rows = {one.client: len(one.code.values) for one in requests}
        return {
            one.client: OutputMessage(one.client, one.step, one.code)
            for one in requests
        }

    def backward_round(self, requests: Any) -> dict[int, CodeGradient]:
        """Return every gradient as it came."""
        return {
            one.client: CodeGradient(one.client, one.step, one.gradient)
            for one in requests
        }


def _crowd(rounds: int) -> dict[str, Any]:
    """Return the bookkeeping of a round of 50 among 1,000 who are there."""
    codec = CODECS.create("raw", shape=(WIDTH,))
    server = _Nothing(ServerSide(nn.Linear(WIDTH, WIDTH), codec, SGD))
    lock = threading.RLock()
    roster = Roster(CROWD, lock, [f"owner-{index}" for index in range(CROWD)])
    with tempfile.TemporaryDirectory() as name:
        run = RoundRun(
            server,
            _contract(CROWD, "parallel"),
            RunPlan(epochs=rounds, owners_per_round=DRAWN, checkpoint_every=10**9),
            roster,
            run="run",
            folder=Path(name) / "checkpoint",
        )
        for member in roster:
            member.batches = 1
            run.come(member)
        run.begin_if_ready(time.monotonic())
        times = [_bookkeeping(run, roster) for _ in range(rounds - 1)]
    typical = sorted(times)[len(times) // 2]
    return {
        "owners": CROWD,
        "owners_per_round": DRAWN,
        "bookkeeping_cpu_ms": round(1000 * typical, 3),
        "bookkeeping_target_ms": 1000 * MOST_BOOKKEEPING_SECONDS,
    }


def _bookkeeping(run: RoundRun, roster: Roster) -> float:
    """Return the CPU seconds of one round in which nothing is computed or sent."""
    values = torch.zeros(8, WIDTH)
    began = time.process_time()
    run.advance(time.monotonic())
    opened = run.open
    assert opened is not None  # noqa: S101  all owners are there
    members = [roster[index] for index in sorted(opened.invited)]
    steps = run.progress.client_steps
    for member in members:
        grant = run.grant_for(member)
        assert grant is not None  # noqa: S101  it was invited
        run.leave(member)
    for kind in ("code", "gradient"):
        for member in members:
            run.hear(member, _message(kind, member, steps[member.index], values))
        run.advance(time.monotonic())
    for member in members:
        run.hand_in(member, TurnDone(opened.round.number))
        run.come(member)
    run.advance(time.monotonic())
    return time.process_time() - began


def _message(kind: str, member: Member, step: int, values: torch.Tensor) -> Any:
    if kind == "code":
        return CodeMessage(member.index, step, Code(values))
    return OutputGradient(member.index, step, values)


def main() -> None:
    """Measure and print JSON."""
    print_measured("scale", measure, whole=Size(), quick=QUICK, parts=PARTS)


if __name__ == "__main__":
    main()
