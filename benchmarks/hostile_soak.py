"""An honest run of many clients, and the memory of the server and of one client.

The clients are forks of one process: fifty that import PyTorch on their own need 17 GB.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.hostile_run import HostileRun, Size, resident_bytes, running, wait_until

_PAUSE_SECONDS = 1.0
_START_SECONDS = 900.0  # until every client has had its first turn


def soak(size: Size) -> dict[str, Any]:
    """Return the resident memory over time; then ask the server to stop."""
    names = [f"client{number:02}" for number in range(size.soak_clients)]
    with running(epochs=100_000, names=names, forked=["clients"]) as run:
        run.start_server()
        run.start_clients()
        wait_until(lambda: run.steps() >= len(names), _START_SECONDS)
        first = run.steps()
        server, client = _watch(run, size.seconds)
        return {
            "clients": len(names),
            "steps": run.steps() - first,
            "samples": len(server),
            "server_mib_by_tenth": _tenths(server),
            "client_mib_by_tenth": _tenths(client),
            "clients_that_ended": sum(
                one.poll() is not None for one in run.clients.values()
            ),
            "exit_code_after_sigterm": run.terminate_server(),
            "stack_traces": run.stack_traces(),
        }


def _watch(run: HostileRun, seconds: float) -> tuple[list[float], list[float]]:
    """Return the memory of the server and of the first client, in MiB."""
    processes = (run.server, run.clients[run.names[0]])
    pids = [process.pid for process in processes if process is not None]
    samples: list[list[float]] = [[], []]
    end = time.monotonic() + seconds
    while time.monotonic() < end and run.is_serving():
        for kept, pid in zip(samples, pids, strict=True):
            kept.append(resident_bytes(pid) / 2**20)
        if len(samples[0]) % 60 == 1:
            latest = [round(kept[-1], 1) for kept in samples]
            print(run.steps(), "steps;", latest, "MiB", file=sys.stderr, flush=True)
        time.sleep(_PAUSE_SECONDS)
    return samples[0], samples[1]


def _tenths(samples: Sequence[float]) -> list[float]:
    """Return the mean of each tenth of ``samples``."""
    bounds = [len(samples) * part // 10 for part in range(11)]
    return [
        round(statistics.mean(samples[begin:end]), 1)
        for begin, end in itertools.pairwise(bounds)
        if end > begin
    ]
