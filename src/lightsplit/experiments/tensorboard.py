"""The figures of every evaluation for TensorBoard, with the extra installed."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lightsplit.errors import ConfigError
from lightsplit.experiments.build import Job
from lightsplit.training import TurnDone

FOLDER = "tensorboard"


class TensorBoardLog:
    """Writes scalars under a run's folder; one that is off does nothing.

    A run that goes on after a crash repeats the steps since its checkpoint; TensorBoard
    is told to forget what it has beyond that.
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

    def observe(self, job: Job, done: TurnDone) -> bool:
        """Log a turn after which the test set was tried."""
        if not self._is_on or done.evaluation is None:
            return True
        line, counts = job.trainer.progress.history[-1], job.trainer.progress.bytes
        step = line["step"]
        if self._writer is None:
            self._writer = _writer_class()(str(self._folder), purge_step=step)
        for name in ("train_loss", "test_loss", "test_accuracy"):
            self._writer.add_scalar(name.replace("_", "/"), line[name], step)
        for kind, count in counts.items():
            self._writer.add_scalar(f"bytes/{kind}", count, step)
        return True


def _writer_class() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ConfigError(
            "TensorBoard is not installed; pip install 'lightsplit[tensorboard]'"
        ) from error
    return SummaryWriter
