"""Many owners of parallel rounds, simulated with and without worker processes.

See ``benchmarks.scale``, part ``simulation``.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lightsplit.deployment.status.memory import resident_bytes
from lightsplit.experiments import build, from_settings

WORKERS = 2
FEW = 10  # times fewer owners, for what one more of them takes


class Crowd(NamedTuple):
    """What is simulated."""

    dataset: str = "fashion-mnist"
    owners: int = 1000
    drawn: int = 50
    batch_size: int = 16
    rounds: int = 6


def simulate(crowd: Crowd) -> dict[str, Any]:
    """Return what rounds take with and without workers, and what an owner takes."""
    found = {**crowd._asdict(), "workers": WORKERS, **_in_a_process(_times, crowd)}
    few = crowd._replace(owners=crowd.owners // FEW)
    for heads in ("shared", "private"):
        held = [_in_a_process(_memory, one, heads) for one in (crowd, few)]
        each = (held[0] - held[1]) // (crowd.owners - few.owners)
        found[f"{heads}_bytes"] = {"process": held[0], "owner": each}
    return found


def _in_a_process(measure: Any, *arguments: Any) -> Any:
    """Return what ``measure`` returns in a new process, whose memory is its own."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(writer, measure, *arguments))
    process.start()
    writer.close()
    found = reader.recv()
    process.join()
    return found


def _send(writer: Any, measure: Any, *arguments: Any) -> None:
    torch.set_num_threads(1)
    writer.send(measure(*arguments))


def _rounds(crowd: Crowd, heads: str, workers: int | None) -> Iterator[Any]:
    """Return the rounds of a run without evaluation."""
    settings = {
        "dataset": crowd.dataset,
        "clients": crowd.owners,
        "owners_per_round": crowd.drawn,
        "batch_size": crowd.batch_size,
        "rounds": "parallel",
        "heads": heads,
        "epochs": 10 * crowd.rounds,
        "eval_every": 10**6,
    }
    return build(from_settings(settings), workers=workers).trainer.run()


def _times(crowd: Crowd) -> dict[str, Any]:
    """Measure a round with and a round without workers, in alternation."""
    alone, crewed = (_rounds(crowd, "shared", count) for count in (None, WORKERS))
    next(alone), next(crewed)  # the workers start
    workers = [one.pid or 0 for one in multiprocessing.active_children()]
    before = _cpu_seconds(workers)
    seconds, cpu = [0.0, 0.0], [0.0, 0.0]
    for _ in range(crowd.rounds):
        for place, rounds in enumerate((alone, crewed)):
            began, cpu_began = time.perf_counter(), time.process_time()
            next(rounds)
            seconds[place] += time.perf_counter() - began
            cpu[place] += time.process_time() - cpu_began
    used = [b - a for a, b in zip(before, _cpu_seconds(workers), strict=True)]
    held = [_resident_bytes(one) for one in workers]
    critical = cpu[1] + max(used)
    return {
        "seconds_alone": round(seconds[0] / crowd.rounds, 3),
        "seconds_with_workers": round(seconds[1] / crowd.rounds, 3),
        "wall_ratio": round(seconds[0] / seconds[1], 2),
        "cpu_seconds_alone": round(cpu[0] / crowd.rounds, 3),
        "cpu_seconds_of_server": round(cpu[1] / crowd.rounds, 3),
        "cpu_seconds_of_workers": [round(one / crowd.rounds, 3) for one in used],
        "cpu_ratio": round(cpu[0] / critical, 2),
        "worker_bytes": max(held),
    }


def _memory(crowd: Crowd, heads: str) -> int:
    """Return the resident memory of one process after a round."""
    rounds = _rounds(crowd, heads, None)
    next(rounds)
    return resident_bytes() or 0


def _cpu_seconds(processes: list[int]) -> list[float]:
    ticks = os.sysconf("SC_CLK_TCK")
    found = []
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        found.append((int(fields[11]) + int(fields[12])) / ticks)
    return found


def _resident_bytes(process: int) -> int:
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
