"""Every benchmark, as one JSON object on standard output."""

import json
import platform

import torch

from benchmarks import (
    formats,
    network,
    online_attacks,
    projection,
    shaped_link,
    step,
    sweep_overhead,
    unsplit,
)


def main() -> None:
    """Measure and print."""
    results = {
        "machine": {
            "cpu": platform.machine(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        },
        "step": step.measure(),
        "projection": projection.measure(),
        "formats": formats.measure(),
        "network": network.measure(),
        "shaped_link": shaped_link.measure(),
        "unsplit": unsplit.measure(),
        "online_attacks": online_attacks.measure(),
        "sweep_overhead": sweep_overhead.measure(),
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
