"""Child process: many clients in threads, their run against one of a single client.

    python -m benchmarks.network_crowd RUN LONE_RUN CERTS
                                       ADDRESS PID LONE_ADDRESS LONE_PID

Both runs are served at the same time; windows of steps alternate between them. A window
begins with a turn and ends where the first turn of the next one could begin, so hand-
overs from client to client are in it. Meanwhile the other run stands still.
"""

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.network_children import end_with_parent, resident_bytes
from benchmarks.network_runs import (
    Line,
    Run,
    SameBatch,
    make_client,
    make_ends,
    take_part,
)

WINDOW_STEPS = 100
WARM_UP = 3  # windows; connections are slower in their first turns
TIMEOUT_SECONDS = 300.0


class Baton:
    """Lets two runs work in turn; one that has left never has it again."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting = [0, 1]

    def take(self, run: int) -> None:
        """Wait until it is this run's time."""
        with self._condition:
            if not self._condition.wait_for(
                lambda: self._waiting[:1] == [run], TIMEOUT_SECONDS
            ):
                raise RuntimeError("the other run does not end its window")

    def pass_on(self, run: int, *, is_last: bool = False) -> None:
        """Let the other run work."""
        with self._condition:
            self._waiting.remove(run)
            if not is_last:
                self._waiting.append(run)
            self._condition.notify_all()


class Windows:
    """The clock of one run, started and stopped at the beginning of turns."""

    def __init__(self, run: Run, number: int, baton: Baton, pid: int) -> None:
        self.seconds: list[float] = []
        self.joined_bytes: int | None = None
        self._run = run
        self._number = number
        self._baton = baton
        self._pid = pid
        self._steps = 0  # of turns that have begun
        self._began = 0.0

    def pace(self, step: Callable[[], object], steps: int) -> None:
        """Take a turn, in time."""
        begun = self._steps
        self._steps += steps  # before a step: the next turn may begin with its last one
        if not begun:
            self.joined_bytes = resident_bytes(self._pid)  # all have joined by now
        if begun % WINDOW_STEPS == 0:
            self._next_window(is_first=not begun)
        for _ in range(steps):
            step()
        if begun + steps == self._run.steps:
            self._baton.pass_on(self._number, is_last=True)

    def _next_window(self, *, is_first: bool) -> None:
        if not is_first:
            self.seconds.append(time.perf_counter() - self._began)
            self._baton.pass_on(self._number)
        self._baton.take(self._number)
        self._began = time.perf_counter()

    @property
    def steps_per_second(self) -> float:
        """Of the median window."""
        return WINDOW_STEPS / statistics.median(self.seconds[WARM_UP:])


def steps_for(windows: int) -> int:
    """Return the steps of a run with so many windows; the last one is not timed."""
    return WINDOW_STEPS * (windows + WARM_UP + 1)


def start(run: Run, windows: Windows, line: Line) -> list[threading.Thread]:
    """Let every client of the run join in a thread of its own."""
    batches = SameBatch(run)
    contract = make_ends(run).contract
    threads = [
        threading.Thread(
            target=take_part,
            args=(
                make_client(run, make_ends(run).side, windows.pace),
                contract,
                batches,
                name,
                line,
            ),
            daemon=True,
        )
        for name in run.names
    ]
    for thread in threads:
        thread.start()
    return threads


def measure(
    runs: list[Run], lines: list[Line], pids: list[int]
) -> dict[str, dict[str, Any]]:
    """Return the speed and the server's memory of the crowd and of the lone run."""
    baton = Baton()
    clocks = [Windows(run, n, baton, pids[n]) for n, run in enumerate(runs)]
    before = [resident_bytes(pid) for pid in pids]
    threads = [
        thread
        for run, clock, line in zip(runs, clocks, lines, strict=True)
        for thread in start(run, clock, line)
    ]
    deadline = time.monotonic() + TIMEOUT_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return {
        name: {
            "steps_per_second": clock.steps_per_second,
            "before_bytes": empty,
            "joined_bytes": clock.joined_bytes,
        }
        for name, clock, empty in zip(("crowd", "lone"), clocks, before, strict=True)
    }


def main(crowd: str, lone: str, certs: str, *ends: str) -> None:
    """Measure and print as JSON."""
    end_with_parent()
    lines = [Line(address, Path(certs)) for address in ends[::2]]
    runs = [Run.from_json(text) for text in (crowd, lone)]
    print(json.dumps(measure(runs, lines, [int(pid) for pid in ends[1::2]])))


if __name__ == "__main__":
    main(*sys.argv[1:])
