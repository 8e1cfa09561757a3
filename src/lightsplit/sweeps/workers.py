"""Workers that run the cells: processes on this machine, or a Ray cluster.

    start(order) ──► [worker] ──► events(): Advance …, Ended

A local worker is a process that takes one cell after another, so torch is loaded only
once. Through the pipe it also learns that it should stop, or that the parent is gone;
then it ends by itself.
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
    """Return the threads of each of ``workers``; OMP_NUM_THREADS limits them."""
    return max(1, torch.get_num_threads() // workers)


class Workers(Protocol):
    """The interface that a sweep needs from its workers."""

    @property
    def free(self) -> int:
        """The number of cells that can be started now."""

    def start(self, order: Order) -> None:
        """Run a cell."""

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return new events; wait for the first at most ``timeout_seconds``."""

    def stop(self) -> None:
        """Ask the running cells to save themselves and end."""

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
        """The number of cells that can be started now."""
        return self._count - len(self._busy)

    def start(self, order: Order) -> None:
        """Give a cell to a live idle process, or to a new one."""
        while self._idle:
            process = self._idle.pop()
            if process.ask(order):
                self._busy[order.key] = process
                return
            process.end()
        process = self._busy[order.key] = _Process(self._threads)
        process.ask(order)

    def events(self, timeout_seconds: float) -> list[Event]:
        """Return the events of the processes, including the death of one."""
        by_line = {process.line: key for key, process in self._busy.items()}
        found: list[Event] = []
        for line in wait(list(by_line), timeout_seconds):
            key = by_line[line]  # type: ignore[index]
            found.append(self._hear(key))
        return found

    def stop(self) -> None:
        """Ask the running cells to save themselves and end."""
        for process in self._busy.values():
            process.ask(STOP)

    def close(self) -> None:
        """End every process without waiting for a cell to finish."""
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
    """A process that runs the cells sent to it."""

    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, far = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(far, threads), daemon=True
        )
        self.process.start()
        far.close()

    def ask(self, what: Order | str | None) -> bool:
        """Send a cell or a request; return whether the process is there to take it."""
        with suppress(ConnectionError):
            self.line.send(what)
            return True
        return False

    def end(self) -> None:
        """Wait for a process that is dead or about to end."""
        self.process.join(JOIN_SECONDS)
        self.line.close()


def _serve(line: Connection, threads: int) -> None:
    """Run cells until told to end; the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    try:
        while (order := line.recv()) is not None:
            if isinstance(order, Order):
                line.send(run_cell(order, line.send, line.poll))
    except (EOFError, ConnectionError):
        return  # the parent is gone
