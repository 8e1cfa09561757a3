"""An honest run of many clients, and the server's memory meanwhile."""

import statistics
import time
from typing import Any

from benchmarks.hostile_run import Size, resident_bytes, running, wait_until

_PAUSE_SECONDS = 1.0


def soak(size: Size) -> dict[str, Any]:
    """Return the server's resident memory over time; then ask it to stop."""
    names = [f"client{number:02}" for number in range(size.soak_clients)]
    with running(epochs=100_000, names=names) as run:
        pid = run.start_server()
        run.start_clients()
        wait_until(lambda: run.steps() >= len(names))
        first, samples = run.steps(), list[float]()
        end = time.monotonic() + size.seconds
        while time.monotonic() < end and run.is_serving():
            samples.append(resident_bytes(pid) / 2**20)
            time.sleep(_PAUSE_SECONDS)
        tenth = max(1, len(samples) // 10)
        return {
            "clients": len(names),
            "steps": run.steps() - first,
            "samples": len(samples),
            "resident_mib_by_tenth": [
                round(statistics.mean(samples[at : at + tenth]), 1)
                for at in range(0, len(samples), tenth)
            ],
            "exit_code_after_sigterm": run.terminate_server(),
        }
