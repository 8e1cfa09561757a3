"""A served run in processes of its own, which the hostile benchmark attacks."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from safetensors.torch import load_file
from torch import equal

from benchmarks.hostile_forks import Fork
from lightsplit.experiments import build, from_settings
from lightsplit.runtime import Secret
from lightsplit.transports.certificates import CertificateFolder
from lightsplit.transports.credentials import TlsFiles, channel_credentials
from lightsplit.transports.sealing import SealingKey

NAMES = ("alice", "bob", "carol")
STRANGER = "mallory"
PATIENCE_SECONDS = 600.0
Process = subprocess.Popen[bytes] | Fork
_COMMAND = str(Path(sys.executable).with_name("lightsplit"))


class Size(NamedTuple):
    """How much is thrown, killed and opened, and how long a part may take."""

    frames: int
    seconds: float
    kills: int
    idle: int
    streams: int
    soak_clients: int


WHOLE = Size(1_000_000, 3600.0, 100, 2000, 200, 50)


class HostileRun:
    """A server and honest clients with certificates, on loopback.

    Args:
        folder: for everything.
        names: of the honest clients.
        checkpoint_every: so many steps.
        forked: "clients", "server" or both: whose commands are forks of one process,
            which saves memory and time.
        turn_seconds: most of one turn; None is the server's own rule.
        settings: of the experiment; an epoch has two steps per client.
    """

    def __init__(
        self,
        folder: Path,
        *,
        names: Sequence[str] = NAMES,
        checkpoint_every: int = 1,
        forked: Collection[str] = (),
        turn_seconds: float | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.names = names
        self.checkpoint_every = checkpoint_every
        self.forked = forked
        self.turn_seconds = turn_seconds
        self.settings: dict[str, Any] = {
            "clients": len(names),
            "train_limit": 32 * len(names),
            "test_limit": 24,
            "batch_size": 16,
            "projection": "dct",
            **settings,
        }
        self.certificates = CertificateFolder(folder / "tls")
        self.certificates.make_authority()
        self.certificates.make_server()
        for name in (*names, STRANGER):
            self.certificates.make_client(name)
        SealingKey.generate().save(folder / "clients.key")
        Secret(0).save(folder / "seed.secret")
        self.port = 0
        self.server: Process | None = None
        self.clients: dict[str, Process] = {}
        self._starts = 0

    def start_server(self) -> int:
        """Start the server, or resume its run; return its process id."""
        self._starts += 1
        out = self.folder / "server"
        source = ["--resume", str(out)]
        if not (out / "experiment.toml").exists():
            source = [*self._flags(), "--out", str(out)]
        names = [part for name in self.names for part in ("--client", name)]
        address = ["--address", f"127.0.0.1:{self.port}"]
        tls = ["--certs", str(self.certificates.path)]
        times = ["--checkpoint-every", str(self.checkpoint_every)]
        if self.turn_seconds is not None:
            times += ["--turn-timeout-seconds", str(self.turn_seconds)]
        self.server = self._start(
            self.server_log, "serve", *source, *address, *tls, *times, *names
        )
        wait_until(
            lambda: "listening on port" in self.server_text or not self.is_serving()
        )
        found = re.search(r"listening on port (\d+)", self.server_text)
        self.port = int(found[1]) if found else 0
        return self.server.pid

    def start_clients(self, names: Iterable[str] = ()) -> None:
        """Start the honest clients, or some of them."""
        for name in names or self.names:
            state = ["--state", str(self.folder / name), "--name", name]
            secrets = ["--key", str(self.folder / "clients.key")]
            secrets += ["--secret", str(self.folder / "seed.secret")]
            line = ["--address", f"127.0.0.1:{self.port}"]
            line += ["--certs", str(self.certificates.path)]
            self.clients[name] = self._start(
                f"{name}.log", "join", *self._flags(), *state, *secrets, *line
            )

    @property
    def server_log(self) -> str:
        """Name of the newest log of the server."""
        return f"server-{self._starts}.log"

    @property
    def server_text(self) -> str:
        """Everything that the newest server has said."""
        return (self.folder / self.server_log).read_text()

    def is_serving(self) -> bool:
        """Return whether the server runs."""
        return self.server is not None and self.server.poll() is None

    def are_clients_gone(self) -> bool:
        """Return whether every client has ended."""
        return all(client.poll() is not None for client in self.clients.values())

    def server_descriptors(self) -> int:
        """Return how many descriptors the server has open; 0 if it has ended."""
        if self.server is None:
            return 0
        with contextlib.suppress(FileNotFoundError):
            return len(os.listdir(f"/proc/{self.server.pid}/fd"))
        return 0

    def steps(self) -> int:
        """Return the step of the newest checkpoint."""
        latest = self.folder / "server" / "checkpoint" / "latest"
        return int(latest.read_text().removeprefix("step-")) if latest.exists() else 0

    def kill_server(self) -> bool:
        """Kill the server and return True; return False if it has ended before."""
        if self.server is None or not self.is_serving():
            return False
        self.server.kill()
        self.server.wait()
        return True

    def kill_client(self, name: str) -> None:
        """Kill an honest client, whose place is free then."""
        self.clients[name].kill()
        self.clients[name].wait()

    def terminate_server(self) -> int:
        """Ask the server to stop and return its exit code."""
        assert self.server is not None  # noqa: S101  it was started
        self.server.send_signal(signal.SIGTERM)
        return self.server.wait(PATIENCE_SECONDS)

    def outcome(self) -> dict[str, Any]:
        """Wait for the end and say how everybody ended."""
        codes = self.wait()
        is_whole = not any(codes.values())
        return {
            "exit_codes": codes,  # None: it had to be ended
            "stack_traces": self.stack_traces(),
            "is_bit_equal": is_whole and self.is_equal_to_one_process(),
            "server_said": self.server_text[-600:],
            "clients_said": {} if is_whole else self._last_words(),
        }

    def _last_words(self) -> dict[str, str]:
        """Return the end of each client's log, for a run that has failed."""
        logs = {name: self.folder / f"{name}.log" for name in self.names}
        return {name: log.read_text()[-600:] for name, log in logs.items()}

    def stack_traces(self) -> int:
        """Return how many stack traces there are in all logs."""
        logs = self.folder.glob("*.log")
        return sum(log.read_text().count("Traceback") for log in logs)

    def wait(self) -> dict[str, int | None]:
        """Return the exit codes; None for whatever does not end in time."""
        assert self.server is not None  # noqa: S101  it was started
        processes = {**self.clients, "server": self.server}
        deadline = time.monotonic() + PATIENCE_SECONDS
        return {name: _ended(one, deadline) for name, one in processes.items()}

    def close(self) -> None:
        """End everything that still runs."""
        for process in (self.server, *self.clients.values()):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def is_equal_to_one_process(self) -> bool:
        """Return whether the server's weights are those of an undisturbed run."""
        job = build(from_settings(self.settings))
        list(job.trainer.run())
        expected = job.trainer.server.side.state()
        got = load_file(self.folder / "server" / "server.safetensors")
        same = all(equal(got[name], expected[name]) for name in expected)
        return same and got.keys() == expected.keys()

    def _flags(self) -> list[str]:
        return [
            part
            for name, value in self.settings.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ]

    def _start(self, log: str, *arguments: str) -> Process:
        whose = "server" if arguments[0] == "serve" else "clients"
        if whose in self.forked:
            return Fork([*arguments], self.folder / log)
        with (self.folder / log).open("wb") as file:
            return subprocess.Popen(  # noqa: S603  our own command
                [_COMMAND, *arguments], stdout=file, stderr=subprocess.STDOUT
            )


@contextlib.contextmanager
def running(**options: Any) -> Iterator[HostileRun]:
    """Yield a run that is not started, and end what it started.

    The options are those of ``HostileRun``.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = HostileRun(Path(folder), **options)
        try:
            yield run
        finally:
            run.close()


def _ended(process: Process, deadline: float) -> int | None:
    wait_until(lambda: process.poll() is not None, deadline - time.monotonic())
    return process.poll()


def open_channel(run: HostileRun, name: str) -> grpc.Channel:
    """Return a connection of its own with the certificate of ``name``."""
    files = TlsFiles.of_client(run.certificates.path, name)
    own = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.secure_channel(
        f"127.0.0.1:{run.port}", channel_credentials(files), options=own
    )


def wait_until(
    condition: Callable[[], bool],
    seconds: float = PATIENCE_SECONDS,
    *,
    pause_seconds: float = 0.005,
) -> bool:
    """Return whether ``condition`` came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_seconds)
    return True


def resident_bytes(pid: int) -> int:
    """Return the memory that a process holds; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0
