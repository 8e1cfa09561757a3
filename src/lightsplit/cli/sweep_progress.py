"""The live view of a sweep: all cells in one bar, and a bar for each that runs."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from lightsplit.cli.console import err
from lightsplit.sweeps import SweepState


class SweepBars:
    """Shows what is done, what runs, what failed and when it will be over.

    Args:
        weights: the estimated seconds of each cell; the time left is scaled by how long
            those took that are over.
    """

    def __init__(self, weights: dict[str, float]) -> None:
        self._weights = weights
        self._began = time.monotonic()
        self._tasks: dict[str, TaskID] = {}
        self._told: set[str] = set()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=err,
            transient=True,
        )
        self._all = self._bar.add_task("cells", total=len(weights), note="")

    @contextmanager
    def shown(self, stop: Callable[[], None]) -> Iterator[None]:
        """Show the bars; the first Ctrl-C asks for a stop, the second insists."""
        wishes: list[int] = []

        def interrupt(number: int, _frame: FrameType | None) -> None:
            if wishes:
                raise KeyboardInterrupt
            wishes.append(number)
            err.print("stopping: running cells are being saved")
            stop()

        previous = signal.signal(signal.SIGINT, interrupt)
        try:
            with self._bar:
                yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def show(self, state: SweepState) -> None:
        """Bring every bar up to date."""
        over = len(state.kept) + len(state.finished) + len(state.failed)
        failed = f"{len(state.failed)} failed, " if state.failed else ""
        note = f"{failed}{self._time_left(state)}"
        self._bar.update(self._all, completed=over, note=note)
        for key in self._tasks.keys() - state.running.keys():
            self._bar.remove_task(self._tasks.pop(key))
        for key, advance in state.running.items():
            if not advance.total_steps:
                continue
            if key not in self._tasks:
                label = state.cells[key].label
                self._tasks[key] = self._bar.add_task(f"  {label}", note="")
            accuracy = advance.accuracy
            self._bar.update(
                self._tasks[key],
                completed=advance.steps,
                total=advance.total_steps,
                note="" if accuracy is None else f"best {accuracy:.2%}",
            )
        self._tell_of_ended(state)

    def _tell_of_ended(self, state: SweepState) -> None:
        """Write a line for each cell that is over, where bars cannot be seen."""
        for key in (state.finished | state.failed.keys()) - self._told:
            self._told.add(key)
            word = "failed" if key in state.failed else "done"
            if not err.is_terminal:
                err.print(f"{word}: {state.cells[key].label}", soft_wrap=True)

    def _time_left(self, state: SweepState) -> str:
        done = sum(self._weights[key] for key in state.finished)
        shares = {
            key: advance.steps / advance.total_steps
            for key, advance in state.running.items()
            if advance.total_steps
        }
        done += sum(self._weights[key] * share for key, share in shares.items())
        left = sum(
            self._weights[cell.key] * (1 - shares.get(cell.key, 0))
            for cell in state.left
        )
        if not done:
            return ""
        seconds = left * (time.monotonic() - self._began) / done
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"about {hours} h {minutes:02d} min left"
