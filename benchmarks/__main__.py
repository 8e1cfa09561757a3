"""Benchmarks, as one JSON object on standard output.

python -m benchmarks            all of them
python -m benchmarks network    one, or several
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable

import torch

from benchmarks import (
    formats,
    import_time,
    network,
    online_attacks,
    projection,
    shaped_link,
    step,
    sweep_overhead,
    unsplit,
)

BENCHMARKS: dict[str, Callable[[], object]] = {
    "step": step.measure,
    "projection": projection.measure,
    "formats": formats.measure,
    "import_time": import_time.measure,
    "network": network.measure,
    "shaped_link": shaped_link.measure,
    "unsplit": unsplit.measure,
    "online_attacks": online_attacks.measure,
    "sweep_overhead": sweep_overhead.measure,
}


def main() -> None:
    """Measure and print; what is being measured is said on standard error."""
    known = ", ".join(BENCHMARKS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed, as ratios within one run."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{known}; all if none is named"
    )
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {known}")
    results: dict[str, object] = {
        "machine": {
            "cpu": platform.machine(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
    }
    for number, name in enumerate(names, 1):
        print(f"{number}/{len(names)} {name}", file=sys.stderr, flush=True)
        results[name] = BENCHMARKS[name]()
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
