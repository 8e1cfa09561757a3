"""kill -9 of the server, at random moments and while it writes a checkpoint.

A kill counts as "while a checkpoint was written" only if it left a draft behind that is
new or has changed since the kill before: a checkpoint that was completed has none. The
server and its clients are forks, so that a kill does not cost seconds of imports. A run
that comes to its end is compared with the same run in one process, and another begins.
"""

import contextlib
import random
import time
from pathlib import Path
from typing import Any

from benchmarks.hostile_run import HostileRun, Size, running, wait_until

_EPOCHS = 40  # of one run: 240 steps
_LONGEST_PAUSE_SECONDS = 3.0
_WRITING_SECONDS = 30.0  # until a server that was resumed writes a checkpoint

Drafts = set[tuple[str, int]]


class Killer:
    """Kills servers, and counts.

    Args:
        most: kills in all.
        end: when to stop, on the monotonic clock.
    """

    def __init__(self, most: int, end: float) -> None:
        self._most = most
        self._end = end
        self._chance = random.Random(1)  # noqa: S311  the same pauses every time
        self.kills = 0
        self.while_writing = 0

    @property
    def goes_on(self) -> bool:
        """Whether there are kills to do, and time."""
        return self.kills < self._most and time.monotonic() < self._end

    def haunt(self, run: HostileRun) -> None:
        """Kill and resume the server until the run is over."""
        folder = run.folder / "server" / "checkpoint"
        stale: Drafts = set()  # drafts that earlier kills have left
        while self.goes_on:
            self._wait(run, folder, stale)
            if run.are_clients_gone() or not run.kill_server():
                return  # the run is over
            found = drafts(folder)
            self.kills += 1
            self.while_writing += bool(found - stale)
            stale = found
            run.start_server()

    def _wait(self, run: HostileRun, folder: Path, stale: Drafts) -> None:
        """Wait for a random moment, or for a checkpoint after a round of turns.

        A run that is killed at its first checkpoint every time never gets on.
        """
        if self.kills % 2:
            time.sleep(self._chance.uniform(0.0, _LONGEST_PAUSE_SECONDS))
            return
        round_end = run.steps() + 2 * len(run.names)
        wait_until(
            lambda: run.steps() >= round_end or run.are_clients_gone(), _WRITING_SECONDS
        )
        wait_until(
            lambda: bool(drafts(folder) - stale) or run.are_clients_gone(),
            _WRITING_SECONDS,
            pause_seconds=0.0005,
        )


def kills(size: Size) -> dict[str, Any]:
    """Return how many kills there were, and how each run ended."""
    killer = Killer(size.kills, time.monotonic() + size.seconds)
    runs = []
    while killer.goes_on:
        with running(epochs=_EPOCHS, forked=["server", "clients"]) as run:
            run.start_server()
            run.start_clients()
            killer.haunt(run)
            runs.append(run.outcome())
    return {
        "kills": killer.kills,
        "while_writing": killer.while_writing,
        "runs": len(runs),
        "bit_equal_runs": sum(one["is_bit_equal"] for one in runs),
        "stack_traces": sum(one["stack_traces"] for one in runs),
        "failed": [one for one in runs if not one["is_bit_equal"]],
    }


def drafts(folder: Path) -> Drafts:
    """Return checkpoints that are half written, with the time of their last change."""
    found = set()
    for draft in folder.glob("*.tmp"):
        with contextlib.suppress(FileNotFoundError):  # it is whole now
            found.add((draft.name, draft.stat().st_ctime_ns))
    return found
