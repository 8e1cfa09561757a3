"""A crowd of owners with real connections, some of whom are drawn for each round.

    owners: threads of a few forked processes, one connection each ──► server: a process

An owner sends the same numbers in every step and computes nothing, so what is measured
is the server: sockets, frames, bookkeeping, and three passes through a small layer.
Steps per second of a crowd are compared with those of one owner, who is in every round.
The count of owners, and the time that they may take, are bounded.
"""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lightsplit.codecs import Code
from lightsplit.deployment.endpoint import Endpoint, open_line
from lightsplit.deployment.network import serve
from lightsplit.deployment.status.memory import resident_bytes
from lightsplit.errors import LightSplitError
from lightsplit.protocol import CodeMessage, Contract, OutputGradient
from lightsplit.protocol.control import Grant, Heard, Hello, Ready, TurnDone, Welcome
from lightsplit.runs.plan import RunPlan
from lightsplit.runtime import JoiningServer

MOST_OWNER_BYTES = 2 * 2**20
BATCH = 8


class Connected(NamedTuple):
    """How many owners are connected, and for how long.

    Attributes:
        owners: who are connected.
        drawn: for each round.
        rounds: of the run.
        alone: rounds of the run with one owner.
        processes: that hold the owners' connections.
        seconds: that a run may take, with the time until all are connected.
    """

    owners: int = 1000
    drawn: int = 50
    rounds: int = 40
    alone: int = 400
    processes: int = 4
    seconds: float = 300.0


Terms = Callable[[int], Contract]
MakeServer = Callable[[], JoiningServer]


def measure_connected(
    crowd: Connected, contract: Terms, make_server: MakeServer
) -> dict[str, Any]:
    """Return steps per second of a crowd and of one owner, and bytes of an owner.

    Args:
        crowd: how many, and for how long.
        contract: of a run with so many owners.
        make_server: makes its server.
    """
    alone = crowd._replace(owners=1, drawn=1, rounds=crowd.alone, processes=1)
    one = _run(alone, contract(1), make_server)
    many = _run(crowd, contract(crowd.owners), make_server)
    rates = {name: run.steps / run.seconds for name, run in (("1", one), ("n", many))}
    return {
        "connected_owners": crowd.owners,
        "connected_per_round": crowd.drawn,
        "steps_per_second": round(rates["n"], 1),
        "steps_per_second_of_one_owner": round(rates["1"], 1),
        "steps_ratio": round(rates["n"] / rates["1"], 3),
        "owner_bytes": (many.with_all - many.without) // crowd.owners,
        "owner_bytes_target": MOST_OWNER_BYTES,
    }


class _Served(NamedTuple):
    """A run at the server: steps and seconds from its first round; resident bytes."""

    steps: int
    seconds: float
    without: int
    with_all: int


def _run(crowd: Connected, contract: Contract, make_server: MakeServer) -> _Served:
    context = multiprocessing.get_context("fork")
    port: Any = context.Value("i", 0)
    reader, writer = context.Pipe(duplex=False)
    owners = [
        context.Process(target=_be_owners, args=(crowd, contract, place, port))
        for place in range(crowd.processes)
    ]
    server = context.Process(
        target=_serve, args=(crowd, contract, make_server, port, writer)
    )
    processes = [*owners, server]
    for process in processes:  # before gRPC is used here: it does not survive a fork
        process.start()
    writer.close()
    try:
        found = reader.recv() if reader.poll(2 * crowd.seconds) else None
    except EOFError:
        found = None
    for process in processes:
        process.join(crowd.seconds if found is not None else 0)
        process.kill()
    if found is None:
        raise RuntimeError(
            f"{crowd.owners} owners did not finish {crowd.rounds} rounds"
        )
    return _Served(*found)


def _serve(
    crowd: Connected,
    contract: Contract,
    make_server: MakeServer,
    port: Any,
    writer: Any,
) -> None:
    torch.set_num_threads(1)
    bytes_: list[int] = []
    deadline = time.monotonic() + crowd.seconds

    def watch(run: Any, number: int) -> bool:
        here = sum(member.peer is not None for member in run.members)
        if here in (0, crowd.owners) and len(bytes_) == (here > 0):
            bytes_.append(resident_bytes() or 0)
        port.value = number
        return time.monotonic() < deadline

    plan = RunPlan(
        epochs=crowd.rounds,
        owners_per_round=crowd.drawn if crowd.owners > crowd.drawn else 0,
        checkpoint_every=10**9,
        step_timeout_seconds=crowd.seconds,
    )
    with tempfile.TemporaryDirectory() as name:
        folder, place = Path(name) / "checkpoint", Endpoint("127.0.0.1:0")
        run = serve(make_server(), contract, plan, place, folder, watch=watch)
    if run.finished is not None:  # a short run may end before its owners are counted
        progress = run.progress
        writer.send((progress.steps, progress.seconds, bytes_[0], bytes_[-1]))


def _be_owners(crowd: Connected, contract: Contract, place: int, port: Any) -> None:
    """Take the part of every owner whose number falls to this process."""
    torch.set_num_threads(1)
    while not port.value:
        time.sleep(0.05)
    endpoint = Endpoint(f"127.0.0.1:{port.value}")
    threads = [
        threading.Thread(target=_take_part, args=(endpoint, contract, index))
        for index in range(place, crowd.owners, crowd.processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _take_part(endpoint: Endpoint, contract: Contract, index: int) -> None:
    """Be one owner, from its greeting to the end of the run."""
    code = Code(torch.ones(BATCH, *contract.activation_shape))
    gradient = torch.full((BATCH, *contract.output_shape), 1e-3)
    line = open_line(endpoint, None)
    with suppress(LightSplitError):  # the server's time is up
        welcome = line.call(Hello(f"owner-{index}", contract.to_json()))
        assert isinstance(welcome, Welcome)  # noqa: S101  it lets everybody in
        instruction = line.call(Ready(1))
        while isinstance(instruction, Grant):
            at = (welcome.index, instruction.first_step)
            line.call(CodeMessage(*at, code))
            line.call(OutputGradient(*at, gradient))
            instruction = line.call(TurnDone(instruction.turn))
        line.finish(Heard())
    line.close()
