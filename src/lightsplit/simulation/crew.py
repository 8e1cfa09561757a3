"""Worker processes that compute the owners of parallel rounds.

Each computes some of a round's owners. The main process is the server: it waits for the
messages of all workers before it answers any, as it would with the owners themselves.

Each end notices on the pipe that the other has ended. If a worker ends, the run ends,
and continues from its last checkpoint when it is resumed.
"""

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

import torch

from lightsplit.errors import LightSplitError, RunError
from lightsplit.protocol import Reply, Request
from lightsplit.protocol.frames import to_frames
from lightsplit.simulation.round_worker import (
    Ended,
    Order,
    RoundWorker,
    Said,
    read_messages,
)

JOIN_SECONDS = 10

Answer = Callable[[list[Request]], Mapping[int, Reply]]
MakeWorker = Callable[..., RoundWorker]


class Failed(NamedTuple):
    """The error that a worker ended with; a traceback where it is not LightSplit's."""

    text: str
    is_expected: bool


class Crew:
    """Processes that are started for the first round.

    Args:
        count: how many.
        make_worker: a function of a module, which makes a worker from its end of the
            line and ``arguments``.
        arguments: that can be pickled.
    """

    def __init__(
        self, count: int, make_worker: MakeWorker, arguments: Sequence[Any]
    ) -> None:
        self.count = count
        self._target = (make_worker, *arguments)
        self._processes: list[_Process] = []

    def run(self, orders: Sequence[Order], answer: Answer) -> list[Ended]:
        """Let the workers take a part of a round each, and return how they ended."""
        while len(self._processes) < len(orders):
            self._processes.append(_Process(self._target))
        busy = self._processes[: len(orders)]
        for process, order in zip(busy, orders, strict=True):
            process.give(order)
        found: list[Ended] = []
        while busy:
            heard = {process: process.hear() for process in busy}
            found += [one for one in heard.values() if isinstance(one, Ended)]
            told = {
                process: read_messages(one.messages)
                for process, one in heard.items()
                if isinstance(one, Said)
            }
            _reply(told, answer)
            busy = list(told)
        return found

    def close(self) -> None:
        """End every process."""
        for process in self._processes:
            process.end()
        self._processes = []


class _Process:
    """A worker, seen from the main process."""

    def __init__(self, target: Sequence[Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self._line, far = context.Pipe()
        self._process: SpawnProcess = context.Process(
            target=_work, args=(far, *target), daemon=True
        )
        with _without_interrupts():
            self._process.start()
        far.close()

    def give(self, what: object) -> None:
        """Send an order or replies; ``hear`` reports the error of a dead worker."""
        with suppress(ConnectionError):
            self._line.send(what)

    def hear(self) -> Said | Ended:
        """Wait for the worker; raise if it has failed or died."""
        try:
            said = self._line.recv()
        except (EOFError, ConnectionError):
            said = None
        if isinstance(said, Said | Ended):
            return said
        if isinstance(said, Failed) and said.is_expected:
            raise RunError(said.text)
        if isinstance(said, Failed):
            raise RuntimeError(f"in a worker process:\n{said.text}")
        self._process.join(JOIN_SECONDS)
        raise RunError(
            f"a worker process ended with code {self._process.exitcode} in the middle "
            "of a round, so the run stops; resume it, and it goes on from its last "
            "checkpoint"
        )

    def end(self) -> None:
        """Let the process end by itself; if it does not, end it."""
        self.give(None)
        self._line.close()
        self._process.join(JOIN_SECONDS)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()
        self._process.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let a process that is started ignore Ctrl-C, which the main process handles.

    It inherits that, so it does not stop either while it is still importing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reply(told: Mapping[_Process, Sequence[Any]], answer: Answer) -> None:
    """Answer the messages of all workers together, in the order of the owners."""
    requests = [one for messages in told.values() for one in messages]
    if not requests:
        return
    replies = answer(sorted(requests, key=lambda request: request.client))
    for process, messages in told.items():
        own = [replies[one.client] for one in messages if one.client in replies]
        process.give([to_frames(reply) for reply in own])


def _work(line: Connection, make_worker: MakeWorker, *arguments: Any) -> None:
    """Work in a process of its own."""
    torch.set_num_threads(1)  # another number may change the last bits
    try:
        make_worker(line, *arguments).serve()
    except (EOFError, ConnectionError):
        return  # the main process is gone
    except LightSplitError as error:
        _tell(line, Failed(str(error), is_expected=True))
    except Exception:  # noqa: BLE001  raised in the main process
        _tell(line, Failed(traceback.format_exc(), is_expected=False))


def _tell(line: Connection, failed: Failed) -> None:
    with suppress(ConnectionError):
        line.send(failed)
