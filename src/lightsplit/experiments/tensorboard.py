"""The figures of a run for TensorBoard, if the extra is installed."""

from collections.abc import Mapping
from typing import Any

from lightsplit.errors import ConfigError
from lightsplit.extras import require
from lightsplit.runs.callbacks import Callback, RunStart, scalars

FOLDER = "tensorboard"


class TensorBoardLog(Callback):
    """Writes scalars to the folder ``tensorboard`` in the run's own.

    A run that resumes tells its lines again, so TensorBoard is told to forget those of
    earlier processes.
    """

    def __init__(self) -> None:
        self._make_writer = _writer_class()
        self._writer: Any = None

    def start(self, run: RunStart) -> None:
        """Open the file of events."""
        if run.folder is None:
            raise ConfigError("TensorBoardLog writes to the run's folder; give it one")
        self._writer = self._make_writer(str(run.folder / FOLDER), purge_step=0)

    def log(self, line: Mapping[str, Any]) -> None:
        """Write the line's numbers at its step, for readers that look now."""
        for name, value in scalars(line).items():
            self._writer.add_scalar(name, value, line["step"])
        self._writer.flush()

    def end(self, *, is_finished: bool) -> None:  # noqa: ARG002
        """Close the file."""
        self._writer.close()


def _writer_class() -> Any:
    require("tensorboard", extra="tensorboard", purpose="--tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
