"""Encrypted predictions beside plain ones: seconds and bytes of a batch, by sockets.

    python -m benchmarks.encrypted

One owner trains the digits for an epoch with a linear server, and the server stays for
predictions. Every round asks for the same batches, each encrypted and as zeros in the
clear (``lightsplit predict --encrypted`` prints the same). Needs ``lightsplit[he]``.
"""

import json
import statistics
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.experiments import Experiment, from_settings
from lightsplit.experiments.deploy import join_experiment, serve_experiment
from lightsplit.experiments.prediction import predict_experiment
from lightsplit.results import RunFolder
from lightsplit.transports.homomorphic import Cost

TASK = Path(__file__).parents[1] / "tests" / "integration" / "own_task" / "linear.py"
SAMPLES = 64
NAME = "alice"
Found = TypeVar("Found")


def measure(rounds: int = 5) -> dict[str, Any]:
    """Return medians of seconds, and bytes, for a batch of 64 samples."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        costs = _costs(Path(folder), rounds)
    seconds = statistics.median(cost.seconds for cost in costs)
    plain = statistics.median(cost.plain_seconds for cost in costs)
    last = costs[-1]
    return {
        "samples": last.samples,
        "rounds": rounds,
        "threads": torch.get_num_threads(),
        "encrypted_seconds": round(seconds, 4),
        "plain_seconds": round(plain, 5),
        "times_as_long": round(seconds / plain, 1),
        "encrypted_bytes": {"sent": last.sent_bytes, "received": last.received_bytes},
        "plain_bytes": {
            "sent": last.plain_sent_bytes,
            "received": last.plain_received_bytes,
        },
    }


def _costs(folder: Path, rounds: int) -> list[Cost]:
    experiment = from_settings(
        {
            "task": str(TASK),
            "codec": "raw",
            "encrypted": True,
            "heads": "private",
            "clients": 1,
            "epochs": 1,
            "train_limit": 256,
            "test_limit": SAMPLES,
        }
    )
    mine = JoinOptions(state_folder=folder / NAME)

    def train(endpoint: Endpoint) -> None:
        join_experiment(experiment, endpoint, mine, name=NAME)

    def predict(endpoint: Endpoint) -> list[Cost]:
        asked = {"name": NAME, "folder": folder / NAME}
        found = [
            predict_experiment(experiment, endpoint, **asked).cost  # type: ignore[arg-type]
            for _ in range(1 + rounds)
        ]
        return [cost for cost in found[1:] if cost is not None]

    _served(experiment, folder, train)
    return _served(experiment, folder, predict)


def _served(
    experiment: Experiment, folder: Path, use: Callable[[Endpoint], Found]
) -> Found:
    """Return what ``use`` makes of a server that runs beside it."""
    ports: list[int] = []
    listens, is_done = threading.Event(), threading.Event()

    def watch(_coordinator: Coordinator, port: int) -> bool:
        ports.append(port)
        listens.set()
        return not is_done.is_set()

    server = threading.Thread(
        target=serve_experiment,
        args=(experiment, RunFolder(folder / "run"), Endpoint("127.0.0.1:0")),
        kwargs={"watch": watch},
    )
    server.start()
    try:
        listens.wait(60)
        return use(Endpoint(f"127.0.0.1:{ports[0]}"))
    finally:
        is_done.set()
        server.join()


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
