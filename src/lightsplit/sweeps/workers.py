"""What runs the cells: processes of this machine (here) or a Ray cluster.

    start(order) ──► [worker] ──► events(): Advance …, Ended

A local worker is a process of its own that takes one cell after another, so torch is
loaded once. The pipe is also how it learns that it should stop, and that nobody waits
for it any more: then it ends by itself.
"""

import multiprocessing
import signal
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Protocol

import torch

from lightsplit.sweeps.work import Ended, Event, Order, run_cell

JOIN_SECONDS = 10
STOP = "stop"


def threads_each(workers: int) -> int:
    """Return the threads of each of so many workers; OMP_NUM_THREADS bounds them."""
    return max(1, torch.get_num_threads() // workers)


class Workers(Protocol):
    """What a sweep needs of whatever runs its cells."""

    @property
    def free(self) -> int:
        """How many more cells can be started now."""

    def start(self, order: Order) -> None:
        """Run a cell."""

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return what has happened, waiting for something at most so long."""

    def stop(self) -> None:
        """Ask running cells to save themselves and end."""

    def close(self) -> None:
        """End every worker."""


class LocalWorkers:
    """At most ``count`` processes, each with its share of the threads."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads = threads_each(count)
        self._idle: list[_Process] = []
        self._busy: dict[str, _Process] = {}

    @property
    def free(self) -> int:
        """How many more cells can be started now."""
        return self._count - len(self._busy)

    def start(self, order: Order) -> None:
        """Give a cell to a process that waits and is alive, or to a new one."""
        while self._idle:
            process = self._idle.pop()
            if process.ask(order):
                self._busy[order.key] = process
                return
            process.end()
        process = self._busy[order.key] = _Process(self._threads)
        process.ask(order)

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return what the processes have said, the death of one included."""
        by_line = {process.line: key for key, process in self._busy.items()}
        found: list[Event] = []
        for line in wait(list(by_line), timeout_seconds):
            key = by_line[line]  # type: ignore[index]
            found.append(self._hear(key))
        return found

    def stop(self) -> None:
        """Ask running cells to save themselves and end."""
        for process in self._busy.values():
            process.ask(STOP)

    def close(self) -> None:
        """End every process; one that is in the middle of a cell is not waited for."""
        for process in self._idle:
            process.ask(None)
        for process in self._busy.values():
            process.process.terminate()
        for process in (*self._idle, *self._busy.values()):
            process.end()
        self._idle, self._busy = [], {}

    def _hear(self, key: str) -> Event:
        process = self._busy[key]
        try:
            event: Event = process.line.recv()
        except (EOFError, ConnectionError):
            process.end()
            del self._busy[key]
            code = process.process.exitcode
            return Ended(key, "lost", f"its process ended with code {code}")
        if isinstance(event, Ended):
            self._idle.append(self._busy.pop(key))
        return event


class _Process:
    """A process that runs the cells it is sent."""

    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, far = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(far, threads), daemon=True
        )
        self.process.start()
        far.close()

    def ask(self, what: Order | str | None) -> bool:
        """Send a cell or a wish and say whether anybody is there to take it."""
        with suppress(ConnectionError):
            self.line.send(what)
            return True
        return False

    def end(self) -> None:
        """Wait for a process that is dead or about to end."""
        self.process.join(JOIN_SECONDS)
        self.line.close()


def _serve(line: Connection, threads: int) -> None:
    """Run cells until told to end; Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    try:
        while (order := line.recv()) is not None:
            if isinstance(order, Order):
                line.send(run_cell(order, line.send, line.poll))
    except (EOFError, ConnectionError):
        return  # the parent is gone
