"""Training beside eight streams that ask for predictions without a pause.

The codes are made once, so that the streams cost the machine little but the server's
own work. Checkpoints are written every ten steps and tell how far the run is.
"""

import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from benchmarks.hostile_messages import predicting_frames
from benchmarks.hostile_run import (
    NAMES,
    HostileRun,
    Size,
    open_channel,
    running,
    wait_until,
)
from lightsplit.transports.grpc_server import SESSION

STREAMS = 8  # a name may hold four: one that trains, three that predict
_FIRST_STEPS = 20
_SAMPLES = 360  # of one question; the test set has no more


def predictions(size: Size) -> dict[str, Any]:
    """Measure steps per second without, with and again without predictions."""
    seconds = min(30.0, size.seconds)
    with running(epochs=2000, checkpoint_every=10) as run:
        run.start_server()
        run.start_clients()
        wait_until(lambda: run.steps() >= _FIRST_STEPS)
        before = _steps_per_second(run, seconds)
        streams = _Streams(run)
        with streams:
            during = _steps_per_second(run, seconds)
        after = _steps_per_second(run, seconds)
        quiet = (before + after) / 2
        return {
            "streams": STREAMS,
            "predictions_per_second": round(sum(streams.answers) / seconds, 1),
            "streams_refused": streams.refused,
            "steps_per_second": [round(one, 1) for one in (before, during, after)],
            "during_of_quiet": round(during / quiet, 2) if quiet else None,
        }


def _steps_per_second(run: HostileRun, seconds: float) -> float:
    first, began = run.steps(), time.monotonic()
    time.sleep(seconds)
    return (run.steps() - first) / (time.monotonic() - began)


class _Streams:
    """Eight streams of the three names, each with one question under way."""

    def __init__(self, run: HostileRun) -> None:
        self._run = run
        self._frames = {
            name: predicting_frames(run, name, samples=_SAMPLES) for name in NAMES
        }
        self._end = threading.Event()
        self.answers = [0] * STREAMS
        self.refused = 0
        self._threads = [
            threading.Thread(target=self._ask, args=(number,))
            for number in range(STREAMS)
        ]

    def __enter__(self) -> "_Streams":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        name = NAMES[number % len(NAMES)]
        greeting, code = self._frames[name]
        came = threading.Semaphore(1)
        with open_channel(self._run, name) as channel:
            call: grpc.StreamStreamMultiCallable[bytes, bytes]
            call = channel.stream_stream(SESSION)
            try:
                for _ in call(self._questions(greeting, code, came)):
                    self.answers[number] += 1
                    came.release()
            except grpc.RpcError:
                self.refused += 1
            self.refused += not self._end.is_set()

    def _questions(
        self, greeting: bytes, code: bytes, came: threading.Semaphore
    ) -> Iterator[bytes]:
        came.acquire()
        yield greeting
        while not self._end.is_set():
            if came.acquire(timeout=0.1):
                yield code
