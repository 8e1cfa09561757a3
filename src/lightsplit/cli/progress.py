"""The progress bar of a training run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lightsplit.cli.console import bytes_text, err, figure_text
from lightsplit.cli.findings import verdict_text
from lightsplit.experiments import Job
from lightsplit.runs.evaluation import LOSS
from lightsplit.simulation import TurnEnded


class TrainingBar:
    """Shows steps, loss, accuracy, bytes and the time left on standard error."""

    def __init__(self, title: str, *, is_quiet: bool) -> None:
        self._title = title
        self._task: TaskID | None = None
        self._wants_stop = False
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=err,
            disable=is_quiet,
            transient=not err.is_terminal,
        )

    @contextmanager
    def shown(self) -> Iterator["TrainingBar"]:
        """Show the bar; the first Ctrl-C asks the run to stop after this turn."""
        previous = signal.signal(signal.SIGINT, self._stop)
        try:
            yield self
        finally:
            if self._task is not None:
                self._bar.stop()
            signal.signal(signal.SIGINT, previous)

    def start(self, job: Job) -> None:
        """Show how many steps there are and how many are done."""
        self._task = self._bar.add_task(
            self._title,
            total=job.trainer.schedule.total_steps,
            completed=job.trainer.progress.place,
            figures="",
        )
        self._bar.start()

    def observe(self, job: Job, done: TurnEnded) -> bool:
        """Show the end of a turn; return false if the user asked to stop.

        The steps of owners who were not in a round count, as the schedule counts them.
        """
        place, figures = job.trainer.progress.place, _figures(job, done)
        if self._task is not None:
            self._bar.update(self._task, completed=place, figures=figures)
        if text := verdict_text(job, done):
            err.print(text, soft_wrap=True, highlight=False)
        if done.evaluation and not err.is_terminal and not self._bar.disable:
            total = job.trainer.schedule.total_steps
            err.print(f"{self._title}  {place}/{total}  {figures}", soft_wrap=True)
        return not self._wants_stop

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if self._wants_stop:
            raise KeyboardInterrupt
        self._wants_stop = True


def _figures(job: Job, done: TurnEnded) -> str:
    progress = job.trainer.progress
    loss = done.report.loss_sum / max(done.report.samples, 1)  # a release has none
    name = job.trainer.state.monitor.name
    last = progress.history[-1][f"test_{name}"] if progress.history else None
    score = ("test " if name == LOSS else "") + figure_text(name, last)
    return f"loss {loss:.3f}  {score}  {bytes_text(progress.bytes['total'])}"
