"""Steps a second over a link of 100 Mbit/s and 20 ms: raw, paper at 32x, and max.

    python -m benchmarks.shaped_link [--dataset fashion-mnist] [--steps 40]

Real ``lightsplit serve`` and ``join``, one client, batch 64, in two network namespaces
with a shaped link between them (as root). Where the kernel cannot shape one, a relay in
user space stands between them; where namespaces are not allowed, the relay is all there
is, and the reason is in the result. 20 ms is the round trip, 10 ms each way.
The time is the server's, from all clients being there to the end of the last step.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.namespaces import (
    CLIENT,
    RELAY_HOST,
    SERVER,
    SERVER_HOST,
    NotAllowedError,
    inside,
    routed_hosts,
    shaped_hosts,
)
from benchmarks.relay import relayed
from lightsplit.data import data_folder

SHAPE: dict[str, Any] = {"bits_per_second": 100e6, "delay_seconds": 0.010}  # each way
_PORT = 7443
VARIANTS = {
    "raw": ["--codec", "raw"],
    "paper 32x": ["--wire", "paper"],
    "max": ["--wire", "max"],
}
_APP = [sys.executable, "-m", "lightsplit.cli.app"]
_TIMEOUT_SECONDS = 900


class Link(NamedTuple):
    """How to run both ends so that a shaped link lies between them."""

    kind: str
    server: tuple[str, ...]
    client: tuple[str, ...]
    listen: str
    address: str


def measure(dataset: str = "fashion-mnist", steps: int = 40) -> dict[str, Any]:
    """Return steps a second of each variant, or the reason why there are none."""
    if not (data_folder(None) / dataset).is_dir():
        return {"skipped": f"{dataset} is not in the data folder"}
    results: dict[str, Any] = {"dataset": dataset, "steps": steps, "batch_size": 64}
    results |= {**SHAPE, "round_trip_ms": 20}
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(_shaped())
        results["link"] = link.kind
        for title, options in VARIANTS.items():
            results[title] = _run(link, dataset, steps, options)
    return results


@contextlib.contextmanager
def _shaped() -> Iterator[Link]:
    """Yield the most real link that is allowed here; its kind says why no better."""
    with contextlib.ExitStack() as stack:
        reasons: list[str] = []
        for make in (_shaped_by_kernel, _relayed_between_hosts):
            try:
                link = stack.enter_context(make())
                break
            except NotAllowedError as error:
                reasons.append(str(error))
        else:
            link = stack.enter_context(_relayed_here())
        because = f", because: {'; '.join(reasons)}" if reasons else ""
        yield link._replace(kind=link.kind + because)


@contextlib.contextmanager
def _shaped_by_kernel() -> Iterator[Link]:
    with shaped_hosts(**SHAPE):
        address = f"{SERVER_HOST}:{_PORT}"
        yield Link("namespaces", inside(SERVER), inside(CLIENT), address, address)


@contextlib.contextmanager
def _relayed_between_hosts() -> Iterator[Link]:
    with (
        routed_hosts(),
        relayed(_PORT, **SHAPE, host=SERVER_HOST, listen=RELAY_HOST) as entry,
    ):
        yield Link(
            "namespaces, a relay in user space between them",
            inside(SERVER),
            inside(CLIENT),
            f"{SERVER_HOST}:{_PORT}",
            f"{RELAY_HOST}:{entry}",
        )


@contextlib.contextmanager
def _relayed_here() -> Iterator[Link]:
    port = _free_port()
    with relayed(port, **SHAPE) as entry:
        here = "127.0.0.1"
        yield Link("a relay in user space", (), (), f"{here}:{port}", f"{here}:{entry}")


def _run(link: Link, dataset: str, steps: int, options: list[str]) -> dict[str, Any]:
    common = ["--dataset", dataset, "--clients", "1", "--max-steps", str(steps)]
    common += ["--test-limit", "64", "--insecure", "--json", *options]
    with tempfile.TemporaryDirectory() as folder:
        out, state = str(Path(folder) / "run"), str(Path(folder) / "client")
        serve = [*_APP, "serve", "--address", link.listen, "--out", out, *common]
        server = _start([*link.server, *serve])
        time.sleep(1)
        join = [*_APP, "join", "--address", link.address, "--state", state, *common]
        client = _start([*link.client, *join])
        record = json.loads(server.communicate(timeout=_TIMEOUT_SECONDS)[0])
        client.communicate(timeout=_TIMEOUT_SECONDS)
    return {
        "steps_per_second": round(steps / record["seconds"], 2),
        "bytes_per_step": round(_step_bytes(record) / steps),
        "step_ratio": round(record["step_ratio"], 2),
    }


def _step_bytes(record: dict[str, Any]) -> int:
    kinds = ("code", "output", "output_gradient", "code_gradient")
    return sum(record["bytes"][kind] for kind in kinds)


def _start(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="fashion-mnist")
    parser.add_argument("--steps", type=int, default=40)
    print(json.dumps(measure(**vars(parser.parse_args())), indent=2))
