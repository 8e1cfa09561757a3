"""One cell, from its settings to its run folder, on any worker.

    Order ──run_cell──► Advance, Advance … ──► Ended

Orders and events are plain values, so a pipe or Ray carries them unchanged. A worker
that does not see the sweep's folder (another machine without a shared disk) works in a
temporary folder and sends its files back.
"""

import io
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lightsplit.attacks import Progress
from lightsplit.audits import AuditOptions, Interrupted, attack
from lightsplit.errors import LightSplitError
from lightsplit.experiments import Job, make_experiment, run
from lightsplit.experiments.tensorboard import TensorBoardLog
from lightsplit.results import RunFolder, atomic
from lightsplit.simulation import TurnEnded

ERROR_FILE = "error.txt"
SECONDS_BETWEEN_EVENTS = 0.5


@dataclass(frozen=True)
class Order:
    """A cell to run.

    Attributes:
        key: the cell's key.
        settings: the settings of its experiment.
        sweep_folder: the folder that holds the cells' folders.
        folder_name: the name of the cell's folder.
        data_dir: folder of the datasets; empty for the default.
        checkpoint_every: steps between checkpoints; 0: at each evaluation.
        has_tensorboard: whether to log for TensorBoard too.
        audit: how to attack the trained cell; None: not at all.
    """

    key: str
    settings: dict[str, Any]
    sweep_folder: str
    folder_name: str
    data_dir: str = ""
    checkpoint_every: int = 0
    has_tensorboard: bool = False
    audit: AuditOptions | None = None


@dataclass(frozen=True)
class Advance:
    """The progress of a cell.

    Attributes:
        steps, total_steps: of the training, or of the current attack of the audit.
        figure: the name of the figure that the task is judged by.
        best: its best value so far, during training.
        audit: the current attack of the audit; empty during training.
    """

    key: str
    steps: int
    total_steps: int
    figure: str = "accuracy"
    best: float | None = None
    audit: str = ""


@dataclass(frozen=True)
class Ended:
    """The end of a cell.

    Attributes:
        outcome: ``done``, ``failed``, ``stopped`` (can be resumed) or ``lost`` (the
            worker died).
        reason: the reason of a failure.
        files: the run folder as a zip archive, if the worker could not write it.
    """

    key: str
    outcome: str
    reason: str = ""
    files: bytes = b""


Event = Advance | Ended
Tell = Callable[[Event], None]


def run_cell(order: Order, tell: Tell, wants_stop: Callable[[], bool]) -> Ended:
    """Run or resume the cell; report a failure instead of raising it."""
    sweep = Path(order.sweep_folder)
    if sweep.is_dir():
        return _run_in(sweep / order.folder_name, order, tell, wants_stop)
    with tempfile.TemporaryDirectory(prefix="lightsplit-cell-") as place:
        folder = Path(place) / order.folder_name
        ended = _run_in(folder, order, tell, wants_stop)
        return replace(ended, files=_packed(folder))


def unpack(files: bytes, folder: Path) -> None:
    """Write the run folder from the archive in ``Ended.files``."""
    with zipfile.ZipFile(io.BytesIO(files)) as archive:
        archive.extractall(folder)  # zipfile strips names that lead outside the folder


def _run_in(
    path: Path, order: Order, tell: Tell, wants_stop: Callable[[], bool]
) -> Ended:
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ERROR_FILE).unlink(missing_ok=True)
        folder = RunFolder(path)
        is_whole = folder.is_finished or _train(folder, order, tell, wants_stop)
        if is_whole and order.audit is not None:
            is_whole = _attack(folder, order, tell, wants_stop)
        return Ended(order.key, "done" if is_whole else "stopped")
    except LightSplitError as error:
        reason, details = str(error), ""
    except Exception as error:  # noqa: BLE001  one cell's error must not end the others
        reason = f"{type(error).__name__}: {error}"
        details = traceback.format_exc()
    atomic.write_text(path / ERROR_FILE, f"{reason}\n\n{details}".strip() + "\n")
    return Ended(order.key, "failed", reason)


def _train(
    folder: RunFolder, order: Order, tell: Tell, wants_stop: Callable[[], bool]
) -> bool:
    """Train, and return whether the training came to its end."""
    throttle = _Throttle(order.key, tell)

    def observe(job: Job, _done: TurnEnded) -> bool:
        throttle.observe(job)
        return not wants_stop()

    record = run(
        make_experiment(order.settings),
        folder,
        data_dir=_data_dir(order),
        checkpoint_every=order.checkpoint_every,
        observe=observe,
        started=throttle.observe,
        callbacks=[TensorBoardLog()] if order.has_tensorboard else [],
    )
    return record is not None


def _attack(
    folder: RunFolder, order: Order, tell: Tell, wants_stop: Callable[[], bool]
) -> bool:
    """Attack the trained cell, and return whether the audit came to its end."""
    throttle = _Throttle(order.key, tell)

    def watch(title: str) -> Progress:
        def progress(done: int, total: int) -> None:
            throttle.tell(done, total, audit=title)
            if wants_stop():
                raise Interrupted

        return progress

    device = make_experiment(order.settings).training.device
    options = replace(order.audit or AuditOptions(), device=device)
    data_dir = _data_dir(order)
    try:
        attack(folder, options, watch=watch, data_dir=data_dir, only_missing=True)
    except Interrupted:
        return False
    return True


def _data_dir(order: Order) -> Path | None:
    return Path(order.data_dir) if order.data_dir else None


class _Throttle:
    """Reports progress, but no more often than anyone can read."""

    def __init__(self, key: str, tell: Tell) -> None:
        self._key = key
        self._tell = tell
        self._last = -SECONDS_BETWEEN_EVENTS

    def observe(self, job: Job) -> None:
        progress, schedule = job.trainer.progress, job.trainer.schedule
        told = {"figure": job.trainer.state.monitor.name, "best": progress.best}
        self.tell(progress.steps, schedule.total_steps, **told)

    def tell(self, steps: int, total_steps: int, **more: Any) -> None:
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_EVENTS:
            self._last = now
            self._tell(Advance(self._key, steps, total_steps, **more))


def _packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", strict_timestamps=False) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()
