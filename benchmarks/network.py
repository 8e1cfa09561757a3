"""The network runtime, as ratios within one run: mutual TLS on loopback.

    python -m benchmarks.network            about five minutes on a quiet machine
    python -m benchmarks.network --quick    a smoke test; its figures mean nothing
    python -m benchmarks.network --part protocol    one of the three below

    step       ResNet-18, batch 64: a step over the network / the same in one process
    protocol   a model that does nothing: a step / bare gRPC echoes of the same bytes
    clients    steps per second with n connected clients / with one; server's memory

Ratios of ``step`` and ``protocol`` come with their target: the most that each may be.

Server, client and echo run in processes of their own, as when deployed. Torch has two
threads at each end of ``step``, and one elsewhere. Idle threads of torch sleep
(OMP_WAIT_POLICY=PASSIVE, unless you set another policy): by default they would keep a
core busy for some milliseconds, and here, unlike on two machines, the other end needs
that core.
"""

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import network_crowd, network_steps
from benchmarks.command import print_measured
from benchmarks.network_children import WAIT_POLICY, measured, serving
from benchmarks.network_runs import BATCH, Run
from lightsplit.transports.certificates import CertificateFolder

CODECS: dict[str, dict[str, Any]] = {
    "raw": {"name": "raw"},
    "lightsplit-f 8x dct": {"name": "lightsplit-f", "ratio": 8, "projection": "dct"},
}
PAYLOAD_BYTES = {"1 MiB": 2**20, "128 KiB": 2**17, "32 KiB": 2**15}
STEP_TARGET = 1.10  # steps over the network / steps in one process
PROTOCOL_TARGETS = {"1 MiB": 2.0, "128 KiB": 2.5, "32 KiB": 2.5}  # steps / echoes
TURNS = {"long": network_crowd.WINDOW_STEPS, "one step": 1}  # steps of a turn
PARTS = ("step", "protocol", "clients")
TIMEOUT_SECONDS = 900.0


class Size(NamedTuple):
    """How much is measured."""

    blocks: int = 10
    rounds: int = 30
    windows: int = 15
    clients: tuple[int, ...] = (1, 10, 50, 100)


QUICK = Size(blocks=1, rounds=1, windows=2, clients=(1, 3))


def measure(
    size: Size = Size(),  # noqa: B008  immutable
    parts: Sequence[str] = PARTS,
) -> dict[str, Any]:
    """Return milliseconds, steps per second, bytes and ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder)
        bench.make_certificates(max(size.clients))
        return {
            "batch_size": BATCH,
            "transport": "gRPC, mutual TLS, loopback, one process each",
            "wait_policy": WAIT_POLICY,
            **{part: bench.measured_part(part, size) for part in parts},
        }


class Bench:
    """Measurements that share certificates and a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._certs = folder / "tls"
        self._served = 0

    def make_certificates(self, clients: int) -> None:
        """Make an authority, a server and so many clients."""
        made = CertificateFolder(self._certs)
        made.make_authority()
        made.make_server()
        for name in Run("nothing", steps=1, clients=clients).names:
            made.make_client(name)

    def measured_part(self, part: str, size: Size) -> dict[str, Any]:
        """Return the figures of one of PARTS."""
        if part == "step":
            return {
                title: self.step(codec, size.blocks) for title, codec in CODECS.items()
            }
        if part == "protocol":
            return {
                title: {
                    **self.protocol(count, size.rounds),
                    "target": PROTOCOL_TARGETS[title],
                }
                for title, count in PAYLOAD_BYTES.items()
            }
        return {
            title: [self.crowd(n, turn, size.windows) for n in size.clients]
            for title, turn in TURNS.items()
        }

    def step(self, codec: dict[str, Any], blocks: int) -> dict[str, float]:
        """Compare a ResNet-18 step with the same step in one process."""
        steps = network_steps.blocks_of(blocks)
        run = Run("resnet18", steps=steps, codec=codec)
        with ExitStack() as stack:
            address, _ = self._serve(stack, run)
            seconds = self._measured("network_steps", "model", run, address)
        return {
            **_milliseconds(seconds),
            "ratio": round(seconds["network"] / seconds["in_process"], 4),
            "target": STEP_TARGET,
        }

    def protocol(self, count: int, rounds: int) -> dict[str, float]:
        """Compare steps of no model with echoes; all four messages are as long."""
        steps = network_steps.repeats_of(rounds)
        run = Run(
            "nothing",
            steps=steps,
            turn_steps=network_steps.TURN_STEPS,
            values=count // (4 * BATCH),
            threads=1,
        )
        with ExitStack() as stack:
            address, _ = self._serve(stack, run)
            port, _ = stack.enter_context(serving("network_echo", str(self._certs)))
            echo = f"127.0.0.1:{port}"
            seconds = self._measured("network_steps", "protocol", run, address, echo)
        return {
            **_milliseconds(seconds),
            "ratio": round(seconds["network"] / seconds["echo"], 3),
        }

    def crowd(self, clients: int, turn_steps: int, windows: int) -> dict[str, Any]:
        """Compare ``clients`` connected clients with a single one."""
        lone = Run(
            "nothing",
            steps=network_crowd.steps_for(windows),
            turn_steps=turn_steps,
            values=PAYLOAD_BYTES["32 KiB"] // (4 * BATCH),
            threads=1,
        )
        run = Run(**{**vars(lone), "clients": clients})
        with ExitStack() as stack:
            here, there = self._serve(stack, run), self._serve(stack, lone)
            ends = [str(one) for end in (here, there) for one in end]
            found = self._measured("network_crowd", run, lone, *ends)
        return {"clients": clients, **_crowd_figures(found, clients)}

    def _serve(self, stack: ExitStack, run: Run) -> tuple[str, int]:
        """Start the server of a run and return its address and process id."""
        self._served += 1
        folder = self._folder / f"run-{self._served}"
        port, pid = stack.enter_context(
            serving("network_server", run.to_json(), str(self._certs), str(folder))
        )
        return f"127.0.0.1:{port}", pid

    def _measured(self, module: str, *parts: str | Run) -> Any:
        """Run a client with the certificates put in after its runs."""
        texts = [part.to_json() if isinstance(part, Run) else part for part in parts]
        last = max(n for n, part in enumerate(parts) if isinstance(part, Run))
        texts.insert(last + 1, str(self._certs))
        return json.loads(measured(module, *texts, timeout_seconds=TIMEOUT_SECONDS))


def _milliseconds(seconds: dict[str, float]) -> dict[str, float]:
    return {f"{name}_ms": round(1e3 * value, 3) for name, value in seconds.items()}


def _crowd_figures(found: dict[str, Any], clients: int) -> dict[str, Any]:
    crowd, lone = found["crowd"], found["lone"]
    figures: dict[str, Any] = {
        "steps_per_second": round(crowd["steps_per_second"], 1),
        "lone_steps_per_second": round(lone["steps_per_second"], 1),
        "ratio": round(crowd["steps_per_second"] / lone["steps_per_second"], 4),
    }
    if crowd["joined_bytes"] is not None and crowd["before_bytes"] is not None:
        grown = crowd["joined_bytes"] - crowd["before_bytes"]
        figures["server_bytes_per_client"] = grown // clients
    return figures


def main() -> None:
    """Measure and print."""
    print_measured(
        "speed of the network runtime",
        measure,
        whole=Size(),
        quick=QUICK,
        parts=PARTS,
    )


if __name__ == "__main__":
    main()
