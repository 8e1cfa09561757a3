"""How long ``import lightsplit`` takes beyond torch's own import.

    a new interpreter, ten times:  import torch │ import lightsplit │ its command line

Each interpreter measures all three, one after the other, so that ``ratio`` compares
times of the same process. The target is one second for ``lightsplit_seconds``.
"""

import json
import statistics
import subprocess
import sys

from benchmarks.command import print_measured

ROUNDS = 10
PROGRAM = """
import importlib, json, time
seconds = {}
for module in ("torch", "lightsplit", "lightsplit.cli.app"):
    begin = time.perf_counter()
    importlib.import_module(module)
    seconds[module] = time.perf_counter() - begin
print(json.dumps(seconds))
"""


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median seconds of each import, and lightsplit's share of torch's."""
    _times()  # the first one reads the files from disk
    times = [_times() for _ in range(rounds)]
    torch, lightsplit, command_line = (
        statistics.median(each[module] for each in times) for module in times[0]
    )
    return {
        "torch_seconds": round(torch, 3),
        "lightsplit_seconds": round(lightsplit, 3),
        "command_line_seconds": round(command_line, 3),
        "ratio": round(lightsplit / torch, 3),
    }


def _times() -> dict[str, float]:
    """Return the seconds of each import in a new interpreter."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    times: dict[str, float] = json.loads(done.stdout)
    return times


if __name__ == "__main__":
    print_measured("Time of imports.", measure, whole=ROUNDS, quick=1)
