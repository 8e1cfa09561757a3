"""What a sweep adds to its cells: twelve on two workers against six in a plain loop.

    python -m benchmarks.sweep_overhead
    python -m benchmarks.sweep_overhead --quick    a smoke test; it says nothing

The reference is two processes side by side, each running half of the cells one after
the other, so that both ways have two busy cores of one thread each. It is timed from
its first cell to its last; the sweep's wall time has the start of its workers in it.
"""

import multiprocessing
import statistics
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import torch

from benchmarks.command import print_measured
from lightsplit.experiments import from_settings, run
from lightsplit.results import RunFolder
from lightsplit.sweeps import Cell, LocalWorkers, Order, SweepFolder, SweepRun
from lightsplit.threads import torch_threads

WORKERS = 2
TARGET_RATIO = 1.1


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    cells: int = 12
    epochs: int = 60  # of the digits: 20 seconds; a sweep's own share is 7 in all
    rounds: int = 1


QUICK = Size(cells=4, epochs=1, rounds=1)


def measure(size: Size | None = None) -> dict[str, object]:
    """Return the seconds of both ways, round by round, and their median ratio."""
    size = size or Size()
    cells = _cells(size)
    rounds = [(_sweep(cells), _plain(cells)) for _ in range(size.rounds)]
    return {
        "cells": size.cells,
        "workers": WORKERS,
        "sweep_seconds": [round(swept, 2) for swept, _ in rounds],
        "plain_seconds": [round(plain, 2) for _, plain in rounds],
        "ratio": round(statistics.median(swept / plain for swept, plain in rounds), 4),
        "target_ratio": TARGET_RATIO,
    }


def _cells(size: Size) -> list[Cell]:
    settings = {"dataset": "digits", "clients": 2, "epochs": size.epochs}
    return [
        Cell(from_settings({**settings, "seed": seed})) for seed in range(size.cells)
    ]


def _sweep(cells: list[Cell]) -> float:
    """Return the wall time of a sweep, its workers started and ended."""
    with tempfile.TemporaryDirectory() as place, torch_threads(1):
        began = time.perf_counter()
        workers = LocalWorkers(WORKERS)
        try:
            order = Order("", {}, place, "")
            state = SweepRun(
                cells, SweepFolder(Path(place)), workers, order=order
            ).run()
        finally:
            workers.close()
        seconds = time.perf_counter() - began
    if len(state.finished) != len(cells):
        raise RuntimeError(f"cells failed: {state.failed}")
    return seconds


def _plain(cells: list[Cell]) -> float:
    """Return the mean time of processes that share the cells and nothing else."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WORKERS)
    lines, processes = [], []
    for number in range(WORKERS):
        line, far = context.Pipe()
        share = cells[number::WORKERS]
        process = context.Process(target=_run_in_turn, args=(share, start, far))
        process.start()
        far.close()
        lines.append(line)
        processes.append(process)
    seconds: list[float] = [line.recv() for line in lines]
    for process in processes:
        process.join()
    return statistics.mean(seconds)


def _run_in_turn(cells: list[Cell], start: Barrier, line: Connection) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        start.wait()
        began = time.perf_counter()
        for cell in cells:
            run(cell.experiment, RunFolder.create(Path(place) / cell.folder_name))
        line.send(time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    print_measured("what a sweep adds to its cells", measure, whole=Size(), quick=QUICK)


if __name__ == "__main__":
    main()
