"""Idle connections and silent streams, before and during an honest run.

Half of the streams have the certificate of an honest client, half that of a stranger.
The honest clients are forks, so that their way in does not contain seconds of imports.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from benchmarks.hostile_run import (
    NAMES,
    STRANGER,
    HostileRun,
    Size,
    open_channel,
    running,
    wait_until,
)
from lightsplit.transports.grpc_server import SESSION

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it tells of every line that is closed


def crowd(size: Size) -> dict[str, Any]:
    """Time the honest clients' way in, without and with the crowd."""
    alone = _entry(size._replace(idle=0, streams=0))
    return {"alone": alone, "in_the_crowd": _entry(size)}


def _entry(size: Size) -> dict[str, Any]:
    with (
        running(epochs=20, forked=["clients"]) as run,
        _Crowd(run, size) as crowd,
    ):
        run.start_clients()
        seconds = _seconds_until_in(run)
        return {
            "seconds_until_in": seconds,
            "connections": crowd.opened,
            "streams": crowd.called,
            "most_open_at_the_server": crowd.most_open,
            **run.outcome(),
            "connections_at_the_end": crowd.opened,
            "streams_at_the_end": crowd.called,
        }


def _seconds_until_in(run: HostileRun) -> dict[str, float]:
    """Return how long each client took, from the start of its process."""
    began = time.monotonic()
    found: dict[str, float] = {}

    def are_in() -> bool:
        text = run.server_text
        for name in NAMES:
            if name not in found and f"{name} has come" in text:
                found[name] = round(time.monotonic() - began, 2)
        return len(found) == len(NAMES) or not run.is_serving()

    wait_until(are_in)
    return found


class _Crowd:
    """Opens connections and streams, and opens those again that the server closes."""

    def __init__(self, run: HostileRun, size: Size) -> None:
        self._run = run
        self._size = size
        self._end = threading.Event()
        self._lines: list[socket.socket] = []
        self._channels: list[grpc.Channel] = []
        self._calls: list[Any] = []
        self.opened = 0
        self.called = 0
        self.most_open = 0

    def __enter__(self) -> "_Crowd":
        self._run.start_server()
        for number in range(self._size.streams):
            name = STRANGER if number % 2 else "bob"
            self._channels.append(open_channel(self._run, name))
        self._come()
        self._thread = threading.Thread(target=self._come_again)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for line in self._lines:
            line.close()
        for channel in self._channels:
            channel.close()

    def _come_again(self) -> None:
        while not self._end.wait(0.5) and self._run.is_serving():
            self._come()

    def _come(self) -> None:
        self._lines = [line for line in self._lines if _is_open(line)]
        for _ in range(self._size.idle - len(self._lines)):
            with contextlib.suppress(OSError):
                address = ("127.0.0.1", self._run.port)
                self._lines.append(socket.create_connection(address, timeout=5))
                self.opened += 1
        self.most_open = max(self.most_open, self._run.server_descriptors())
        self._calls = self._calls or [None] * self._size.streams
        for number, channel in enumerate(self._channels):
            if self._is_over(number):
                call: grpc.StreamStreamMultiCallable[bytes, bytes]
                call = channel.stream_stream(SESSION)
                self._calls[number] = call(_silence(self._end))
                self.called += 1

    def _is_over(self, number: int) -> bool:
        """Return whether a stream is to be opened, perhaps again.

        A stranger's was refused at once, but counts as active while nobody reads that.
        """
        call = self._calls[number]
        if call is not None and number % 2:
            call.cancel()
        return call is None or not call.is_active()


def _is_open(line: socket.socket) -> bool:
    """Return whether the server has not closed the line; it sends no other bytes."""
    line.setblocking(False)
    try:
        return bool(line.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _silence(end: threading.Event) -> Iterator[bytes]:
    """Say nothing until ``end``."""
    end.wait()
    yield from ()
