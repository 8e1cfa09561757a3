"""The live view of a sweep: one bar for all cells, and one for each running cell."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from lightsplit.audits.during import TRAINING
from lightsplit.cli.console import err, figure_text
from lightsplit.sweeps import Advance, Estimate, SweepState


class SweepBars:
    """Shows which cells are done, running and failed, and how long the rest will take.

    Args:
        costs: the estimated seconds of each cell; the time left is corrected by how
            long the finished cells really took.
    """

    def __init__(self, costs: dict[str, Estimate]) -> None:
        self._costs = costs
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
        self._all = self._bar.add_task("cells", total=len(costs), note="")

    @contextmanager
    def shown(self, stop: Callable[[], None]) -> Iterator[None]:
        """Show the bars; the first Ctrl-C asks for a stop, the second insists."""
        wishes: list[int] = []

        def interrupt(number: int, _frame: FrameType | None) -> None:
            if wishes:
                raise KeyboardInterrupt
            wishes.append(number)
            err.print("stopping; saving the running cells")
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
            if advance.total_steps:
                self._show_cell(state.cells[key].label, advance)
        self._tell_of_ended(state)

    def _show_cell(self, label: str, advance: Advance) -> None:
        if advance.key not in self._tasks:
            self._tasks[advance.key] = self._bar.add_task("", note="")
        audit = f", audit: {advance.audit}" if advance.audit else ""
        self._bar.update(
            self._tasks[advance.key],
            description=f"  {label}{audit}",
            completed=advance.steps,
            total=advance.total_steps,
            note=_note(advance),
        )

    def _tell_of_ended(self, state: SweepState) -> None:
        """Print a line for each finished cell when no bars can be shown."""
        for key in (state.finished | state.failed.keys()) - self._told:
            self._told.add(key)
            word = "failed" if key in state.failed else "done"
            if not err.is_terminal:
                err.print(f"{word}: {state.cells[key].label}", soft_wrap=True)

    def _time_left(self, state: SweepState) -> str:
        done = sum(self._costs[key].seconds for key in state.finished)
        begun = sum(
            _seconds_done(self._costs[key], advance)
            for key, advance in state.running.items()
        )
        left = sum(self._costs[cell.key].seconds for cell in state.left) - begun
        done += begun
        if not done:
            return ""
        seconds = left * (time.monotonic() - self._began) / done
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"about {hours} h {minutes:02d} min left"


def _note(advance: Advance) -> str:
    if advance.audit:
        return f"{advance.steps / advance.total_steps:.0%}"
    if advance.best is None:
        return ""
    return f"best {figure_text(advance.figure, advance.best)}"


def _seconds_done(cost: Estimate, advance: Advance) -> float:
    """Return how many of its estimated seconds a running cell has completed."""
    share = advance.steps / advance.total_steps if advance.total_steps else 0.0
    if not advance.audit:
        return cost.training_seconds * share
    if advance.audit == TRAINING:
        return cost.training_seconds + cost.audit_seconds * share
    return cost.seconds
