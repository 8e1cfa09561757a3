"""The figures of every evaluation for TensorBoard, if the extra is installed."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lightsplit.experiments.build import Job
from lightsplit.extras import require
from lightsplit.simulation import TurnEnded

FOLDER = "tensorboard"


class TensorBoardLog:
    """Writes scalars under a run's folder; with ``is_on=False`` it does nothing.

    A run that resumes after a crash repeats the steps since its checkpoint. TensorBoard
    is told to forget its scalars of those steps.
    """

    def __init__(self, folder: Path, *, is_on: bool = True) -> None:
        self._folder = folder / FOLDER
        self._is_on = is_on
        self._writer: Any = None
        if is_on:
            _writer_class()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def observe(self, job: Job, done: TurnEnded) -> bool:
        """Log a turn that ended with an evaluation; always return true."""
        if not self._is_on or done.evaluation is None:
            return True
        line, counts = job.trainer.progress.history[-1], job.trainer.progress.bytes
        step = line["step"]
        if self._writer is None:
            self._writer = _writer_class()(str(self._folder), purge_step=step)
        tested = [name for name in line if name.startswith("test_")]
        for name in ("train_loss", *tested):
            self._writer.add_scalar(name.replace("_", "/", 1), line[name], step)
        for name, value in line.get("objectives", {}).items():
            self._writer.add_scalar(f"objectives/{name}", value, step)
        for kind, count in counts.items():
            self._writer.add_scalar(f"bytes/{kind}", count, step)
        return True


def _writer_class() -> Any:
    require("tensorboard", extra="tensorboard", purpose="--tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
