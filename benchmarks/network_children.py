"""The processes of a network benchmark: started here, and gone in every case.

A child that serves prints its port as its first line. It ends when its standard input
does, so it dies with its parent even where the parent was killed.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_POLICY = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")  # of idle torch threads
_ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run ``python -m benchmarks.MODULE`` and give its port and process id."""
    with _child(module, *arguments) as child:
        assert child.stdout is not None  # noqa: S101
        line = child.stdout.readline()
        if not line.strip().isdigit():
            raise RuntimeError(f"benchmarks.{module} did not start")
        yield int(line), child.pid


def measured(module: str, *arguments: str, timeout_seconds: float) -> str:
    """Run ``python -m benchmarks.MODULE`` to its end and return what it printed."""
    with _child(module, *arguments) as child:
        timer = threading.Timer(timeout_seconds, child.kill)
        timer.start()
        try:
            assert child.stdout is not None  # noqa: S101
            printed = child.stdout.read()
        finally:
            timer.cancel()
        if child.wait() != 0:
            raise RuntimeError(
                f"benchmarks.{module} ended with {child.returncode} "
                f"within {timeout_seconds:g} s"
            )
        return printed


def end_with_parent() -> None:
    """In a child: leave at once when standard input ends."""

    def wait() -> None:
        os.read(0, 1)  # not sys.stdin: its lock would block the interpreter's end
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return None
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def _child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(  # noqa: S603  our own modules
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=_ROOT,
        env={**os.environ, "OMP_WAIT_POLICY": WAIT_POLICY},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
