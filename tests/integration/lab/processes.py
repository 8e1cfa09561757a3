"""Servers and clients as processes that can be killed, stopped and started again."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from lab.runs import NAMES, PATIENCE_SECONDS, complete


def options(**settings):
    """Return settings as options of the command line."""
    found = []
    for name, value in complete(**settings).items():
        found += [f"--{name.replace('_', '-')}", str(value)]
    return found


def wait_until(condition, what, seconds=PATIENCE_SECONDS):
    """Return the first true value of ``condition``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.005)
    return value


class Process:
    """One command that runs, or ran.

    Attributes:
        code: its exit code, once it is over.
        peak_bytes: the most memory that it held, once it is over.
    """

    def __init__(self, pid, log):
        self.pid = pid
        self.log = log
        self.code = None
        self.peak_bytes = 0
        self._is_over = threading.Event()

    def signal(self, number):
        if self.code is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def end(self, code, peak_bytes):
        self.code, self.peak_bytes = code, peak_bytes
        self._is_over.set()

    def wait(self, seconds=PATIENCE_SECONDS):
        assert self._is_over.wait(seconds), f"it goes on: {self.text}"
        return self.code

    @property
    def text(self):
        return self.log.read_text() if self.log.exists() else ""


class Zygote:
    """Starts commands; every one of them is gone when it is closed."""

    def __init__(self):
        here = Path(__file__).parent
        self._process = subprocess.Popen(
            [sys.executable, str(here / "zygote.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": self._path(here)},
        )
        self._started = queue.SimpleQueue()
        self._processes = {}
        self.exits = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        self._reader.start()
        self._started.get(timeout=2 * PATIENCE_SECONDS)  # importing takes its time
        return self

    def __exit__(self, *_exc):
        self._process.stdin.write("null\n")
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        self._process.stdout.close()

    def start(self, log, *argv, program="lightsplit", cwd=None):
        """Return a new process of ``lightsplit ARGV``; its output goes to ``log``.

        ``program`` may be a script instead.
        """
        order = {"argv": [str(program), *map(str, argv)], "log": str(log)}
        order["cwd"] = str(cwd or Path.cwd())
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        pid = self._started.get(timeout=PATIENCE_SECONDS)
        process = self._processes[pid] = Process(pid, Path(log))
        return process

    @staticmethod
    def _path(here):
        """Find lab as well as the package that is under test."""
        known = [str(here.parent), os.environ.get("PYTHONPATH", "")]
        return os.pathsep.join(filter(None, known))

    def kill_all(self):
        """End what runs, and wait for it."""
        running = [p for p in self._processes.values() if p.code is None]
        for process in running:
            process.signal(signal.SIGKILL)
        for process in running:
            process.wait()
        self._processes.clear()

    def _read(self):
        for line in self._process.stdout:
            fact = json.loads(line)
            if "code" not in fact:
                self._started.put(fact["pid"])
                continue
            process = wait_until(
                lambda pid=fact["pid"]: self._processes.get(pid), "a pid"
            )
            process.end(fact["code"], fact["peak_bytes"])


class Cluster:
    """One server and its clients as processes, started again when they were killed.

    ``secret`` is a file for all clients; without it each makes a secret of its own.
    ``serve`` has options of the server, for its next start.
    """

    def __init__(self, zygote, folder, *, settings, serve=(), join=(), secret=None):
        self.folder = folder
        self._secret = [] if secret is None else ["--secret", secret]
        self.settings = options(**settings)
        self.server = None
        self.clients = {}
        self.ports = {}
        self._zygote = zygote
        self.serve = [str(one) for one in serve]
        self._join = [str(one) for one in join]
        self._starts = 0

    def start_server(self):
        """Start the server, or go on with its run, and return its port."""
        self._starts += 1
        folder = self.folder / "server"
        log = self.folder / f"server-{self._starts}.log"
        source = (
            ["--resume", folder]
            if (folder / "experiment.toml").exists()
            else [*self.settings, "--out", folder]
        )
        names = [part for name in NAMES for part in ("--client", name)]
        self.server = self._zygote.start(
            log, "serve", *source, "--address", "127.0.0.1:0", *names, *self.serve
        )
        said = wait_until(
            lambda: (
                re.search(r"listening on port (\d+)", self.server.text)
                or self.server.code is not None
            ),
            "the port",
        )
        assert said is not True, self.server.text
        return int(said[1])

    def start_client(self, name):
        """Start a client that connects to ``ports[name]``."""
        log = self.folder / f"{name}.log"
        self.clients[name] = self._zygote.start(log, *self.join_command(name))
        return self.clients[name]

    def join_command(self, name):
        """Return what starts a client, without the program."""
        return [
            "join",
            *self.settings,
            *("--address", f"127.0.0.1:{self.ports[name]}", "--name", name),
            *("--key", self.folder / "clients.key", "--state", self.folder / name),
            *self._secret,
            *self._join,
        ]

    @property
    def processes(self):
        return {"server": self.server, **self.clients}
