"""Commands as forks of one process that has everything imported.

A fork is a process of its own with the command line's own entry. It shares the memory
that PyTorch takes with its siblings: fifty clients of 340 MB each would not fit into a
machine otherwise. It also starts in a tenth of the time.
"""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import lightsplit.cli.app

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["benchmarks.hostile_preload"])


class Fork:
    """A running command, with the methods of ``subprocess.Popen`` that we use."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        log.touch()
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(arguments, str(log))
        )
        self._process.start()
        assert self._process.pid is not None  # noqa: S101  it was started
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; raise ``TimeoutError`` if it runs for longer."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
        return self._process.exitcode

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _run(arguments: list[str], log: str) -> None:
    """Be the command."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number in (1, 2):
        os.dup2(file, number)
    sys.argv = ["lightsplit", *arguments]
    lightsplit.cli.app.main()
