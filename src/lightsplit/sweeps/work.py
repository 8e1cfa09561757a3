"""One cell, from its settings to its run folder, wherever that happens.

    Order ──run_cell──► Advance, Advance … ──► Ended

An order and an event are plain values: they go through a pipe or over Ray unchanged.
A worker that does not see the sweep's folder (another machine without a shared disk)
works in a temporary one and sends its files along.
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
from lightsplit.training import TurnDone

ERROR_FILE = "error.txt"
SECONDS_BETWEEN_EVENTS = 0.5


@dataclass(frozen=True)
class Order:
    """A cell to be run.

    Attributes:
        key: of the cell.
        settings: of its experiment.
        sweep_folder: in which the cells have their folders.
        folder_name: of the cell.
        data_dir: where the datasets lie; empty for the usual place.
        checkpoint_every: steps; 0 is at each evaluation.
        has_tensorboard: whether to log for TensorBoard too.
        audit: how the trained cell is attacked; None is not at all.
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
    """A cell has come so far.

    Attributes:
        steps, total_steps: of its training, or of what its audit is at.
        accuracy: the best so far, in training.
        audit: what the audit is at; empty in training.
    """

    key: str
    steps: int
    total_steps: int
    accuracy: float | None = None
    audit: str = ""


@dataclass(frozen=True)
class Ended:
    """A cell is over.

    Attributes:
        outcome: ``done``, ``failed``, ``stopped`` (can be continued) or ``lost`` (the
            worker died).
        reason: of a failure.
        files: the run folder as tar, where the worker could not write it itself.
    """

    key: str
    outcome: str
    reason: str = ""
    files: bytes = b""


Event = Advance | Ended
Tell = Callable[[Event], None]


def run_cell(order: Order, tell: Tell, wants_stop: Callable[[], bool]) -> Ended:
    """Run the cell or go on with it; a failure is told, never raised."""
    sweep = Path(order.sweep_folder)
    if sweep.is_dir():
        return _run_in(sweep / order.folder_name, order, tell, wants_stop)
    with tempfile.TemporaryDirectory(prefix="lightsplit-cell-") as place:
        folder = Path(place) / order.folder_name
        ended = _run_in(folder, order, tell, wants_stop)
        return replace(ended, files=_packed(folder))


def unpack(files: bytes, folder: Path) -> None:
    """Write the run folder that ``Ended.files`` holds."""
    with zipfile.ZipFile(io.BytesIO(files)) as archive:
        archive.extractall(folder)  # never outside of it, whatever the names say


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
    except Exception as error:  # noqa: BLE001  a cell's fault must not end the others
        reason = f"{type(error).__name__}: {error}"
        details = traceback.format_exc()
    atomic.write_text(path / ERROR_FILE, f"{reason}\n\n{details}".strip() + "\n")
    return Ended(order.key, "failed", reason)


def _train(
    folder: RunFolder, order: Order, tell: Tell, wants_stop: Callable[[], bool]
) -> bool:
    """Train and say whether it came to its end."""
    throttle = _Throttle(order.key, tell)
    with TensorBoardLog(folder.path, is_on=order.has_tensorboard) as log:

        def observe(job: Job, done: TurnDone) -> bool:
            log.observe(job, done)
            throttle.observe(job)
            return not wants_stop()

        record = run(
            make_experiment(order.settings),
            folder,
            data_dir=_data_dir(order),
            checkpoint_every=order.checkpoint_every,
            observe=observe,
            started=throttle.observe,
        )
    return record is not None


def _attack(
    folder: RunFolder, order: Order, tell: Tell, wants_stop: Callable[[], bool]
) -> bool:
    """Attack the trained cell and say whether that came to its end."""
    throttle = _Throttle(order.key, tell)

    def watch(title: str) -> Progress:
        def progress(done: int, total: int) -> None:
            throttle.tell(done, total, audit=title)
            if wants_stop():
                raise Interrupted

        return progress

    device = make_experiment(order.settings).device
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
    """Tells of progress, but not more often than anyone can read."""

    def __init__(self, key: str, tell: Tell) -> None:
        self._key = key
        self._tell = tell
        self._last = -SECONDS_BETWEEN_EVENTS

    def observe(self, job: Job) -> None:
        progress, schedule = job.trainer.progress, job.trainer.schedule
        accuracy = progress.best_accuracy if progress.history else None
        self.tell(progress.steps, schedule.total_steps, accuracy=accuracy)

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
