"""Hostile peers and a killed server, on loopback alone, as one JSON object.

    python -m benchmarks.hostile                              all parts
    python -m benchmarks.hostile --part frames --seconds 600  one part, for so long
    python -m benchmarks.hostile --quick                      only shows that it runs

    frames       damaged frames and connections, with and without a certificate
    kills        kill -9 of the server at random moments, also while it writes
    crowd        idle connections and silent streams: how soon do honest clients get in?
    predictions  training beside eight streams that predict without a pause
    soak         an honest run of many clients: does the server's memory grow?

But for the last two, the honest run must end with the weights of the same run in one
process, bit for bit.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.hostile_crowd import crowd
from benchmarks.hostile_frames import frames
from benchmarks.hostile_kills import kills
from benchmarks.hostile_predictions import predictions
from benchmarks.hostile_run import WHOLE, Size
from benchmarks.hostile_soak import soak

QUICK = Size(100, 10.0, 2, 20, 10, 3)


PARTS: dict[str, Callable[[Size], dict[str, Any]]] = {
    "frames": frames,
    "kills": kills,
    "crowd": crowd,
    "predictions": predictions,
    "soak": soak,
}


def measure(size: Size, parts: list[str]) -> dict[str, Any]:
    """Return the figures of the chosen parts."""
    found: dict[str, Any] = {"size": size._asdict()}
    for part in parts:
        began = time.monotonic()
        found[part] = PARTS[part](size)
        found[part]["seconds"] = round(time.monotonic() - began)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hostile", description="Hostile peers, on loopback."
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--part", choices=PARTS, help="only this; default: all")
    parser.add_argument("--seconds", type=float, help="at most so long for each part")
    parser.add_argument("--clients", type=int, help="of the soak; default: 50")
    parser.add_argument("--kills", type=int, help="of the server; default: 100")
    asked = parser.parse_args()
    size = QUICK if asked.quick else WHOLE
    size = size._replace(
        seconds=asked.seconds or size.seconds,
        kills=asked.kills or size.kills,
        soak_clients=asked.clients or size.soak_clients,
    )
    print(json.dumps(measure(size, [asked.part] if asked.part else [*PARTS]), indent=2))


if __name__ == "__main__":
    main()
