"""Child process: a client that times its steps over the network against others.

    python -m benchmarks.network_steps model RUN CERTS ADDRESS
        blocks of steps over the network, and the same blocks in this process
    python -m benchmarks.network_steps protocol RUN CERTS ADDRESS ECHO_ADDRESS
        steps of a model that does nothing, and bare echoes of the same bytes

Rounds alternate. A block is some steps and one forward pass of one sample, which the
server answers only after its last update. So the work that the server does after a
reply is counted too, and it does not disturb the next block.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch

from benchmarks.network_children import end_with_parent
from benchmarks.network_echo import Echo
from benchmarks.network_runs import (
    BATCH,
    Line,
    Paced,
    Run,
    SameBatch,
    make_client,
    make_ends,
    take_part,
)
from benchmarks.timing import interleaved_medians, interleaved_seconds
from lightsplit.codecs import Code
from lightsplit.protocol import CodeMessage, OutputGradient, frame_bytes

WARM_UP = 2
BLOCK = 4  # steps of a model
REPEATS = 20  # steps of no model: as in a turn, one after the other
TURN_STEPS = 100  # of no model; the first turn is not counted


def blocks_of(rounds: int) -> int:
    """Return how many steps ``model`` needs for so many rounds."""
    return BLOCK * (rounds + WARM_UP)


def repeats_of(rounds: int) -> int:
    """Return how many steps ``protocol`` needs for so many rounds."""
    return TURN_STEPS + REPEATS * rounds


def model(run: Run, line: Line) -> dict[str, float]:
    """Return the seconds of a step over the network and in this process."""
    local = make_ends(run)
    batches = SameBatch(run)
    here = make_client(run, local.side)
    here.send = local.server.handle
    remote = make_client(run, make_ends(run).side)
    inputs, labels = batches.batch(0)
    medians: dict[str, float] = {}

    def pace(step: Callable[[], object], steps: int) -> None:
        tasks = {
            "network": lambda: _block(step, remote, inputs),
            "in_process": lambda: _block(
                lambda: here.step(inputs, labels), here, inputs
            ),
        }
        rounds = steps // BLOCK - WARM_UP
        found = interleaved_medians(tasks, rounds=rounds, warm_up=WARM_UP)
        medians.update({name: value / BLOCK for name, value in found.items()})

    remote.beat = pace
    take_part(remote, local.contract, batches, run.names[0], line)
    return medians


def protocol(run: Run, line: Line, echo_address: str) -> dict[str, float]:
    """Return the seconds of a step, of the same step in process and of the echoes."""
    local = make_ends(run)
    batches = SameBatch(run)
    here = make_client(run, local.side)
    here.send = local.server.handle
    inputs, labels = batches.batch(0)
    echo = Echo(Line(echo_address, line.certs), run.names[0])
    up, down = _frames(run)
    seconds: dict[str, list[float]] = defaultdict(list)

    def pace(step: Callable[[], object], steps: int) -> None:
        tasks = {
            "network": partial(_repeat, step),
            "echo": partial(_repeat, lambda: _echoes(echo, up, down)),
            "in_process": partial(_repeat, lambda: here.step(inputs, labels)),
        }
        found = interleaved_seconds(tasks, rounds=steps // REPEATS)
        for name, values in found.items():
            seconds[name] += values

    remote = make_client(run, make_ends(run).side, pace)
    try:
        take_part(remote, local.contract, batches, run.names[0], line)
    finally:
        echo.close()
    warm_up = TURN_STEPS // REPEATS
    return {
        name: median(values[warm_up:]) / REPEATS for name, values in seconds.items()
    }


def _block(step: Callable[[], object], client: Paced, inputs: torch.Tensor) -> None:
    for _ in range(BLOCK):
        step()
    client.predict(inputs[:1])


def _repeat(task: Callable[[], object]) -> None:
    for _ in range(REPEATS):
        task()


def _frames(run: Run) -> tuple[bytes, bytes]:
    """Return bytes as long as a step's two requests; its replies are as long."""
    values = torch.zeros(BATCH, run.values)
    code, gradient = CodeMessage(0, 1, Code(values)), OutputGradient(0, 1, values)
    return bytes(frame_bytes(code)), bytes(frame_bytes(gradient))


def _echoes(echo: Echo, first: bytes, second: bytes) -> None:
    echo.round_trip(first)
    echo.round_trip(second)


def main(kind: str, run_text: str, certs: str, *addresses: str) -> None:
    """Measure and print seconds as JSON."""
    end_with_parent()
    run, line = Run.from_json(run_text), Line(addresses[0], Path(certs))
    if kind == "model":
        print(json.dumps(model(run, line)))
    else:
        print(json.dumps(protocol(run, line, addresses[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
