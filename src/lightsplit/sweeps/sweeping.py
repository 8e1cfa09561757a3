"""A sweep from its first cell to its last.

waiting ──start──► running ──done──► finished
   ▲                  ├────failed──► failed     (kept, reported at the end)
   └──── lost ────────┘                         (again, up to MOST_LOSSES times)
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lightsplit.sweeps.cells import Cell
from lightsplit.sweeps.sweep_folder import SweepFolder
from lightsplit.sweeps.work import ERROR_FILE, Advance, Ended, Order, unpack
from lightsplit.sweeps.workers import Workers

MOST_LOSSES = 2
WAIT_SECONDS = 0.5


@dataclass
class SweepState:
    """The state of every cell of a sweep.

    Attributes:
        cells: all cells by key.
        kept: cells that were finished before.
        finished, failed: cells that ended now; failed ones with their reasons.
        running: the latest event of each running cell.
        is_stopping: whether the user asked to stop.
    """

    cells: dict[str, Cell]
    kept: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, Advance] = field(default_factory=dict)
    is_stopping: bool = False

    @property
    def left(self) -> list[Cell]:
        """The cells that have not ended yet."""
        over = self.kept | self.finished | set(self.failed)
        return [cell for key, cell in self.cells.items() if key not in over]


Watch = Callable[[SweepState], None]


class SweepRun:
    """Runs the unfinished cells, as many at a time as there are workers.

    Args:
        cells: the cells of the sweep.
        folder: the folder of their run folders.
        workers: the workers that run them.
        order: the fields that cells share; key, settings and folder are filled in.
        watch: called with the state whenever it may have changed.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        folder: SweepFolder,
        workers: Workers,
        *,
        order: Order,
        watch: Watch = lambda _state: None,
    ) -> None:
        self.state = SweepState({cell.key: cell for cell in cells})
        self.state.kept = {
            cell.key for cell in cells if folder.is_finished(cell, order.audit)
        }
        self._folder = folder
        self._workers = workers
        self._order = order
        self._watch = watch
        self._waiting = deque(self.state.left)
        self._losses: Counter[str] = Counter()

    def run(self) -> SweepState:
        """Run to the end, or until ``stop``; the state lists the failures."""
        while self._has_work():
            self._start_what_fits()
            self._watch(self.state)
            for event in self._workers.events(WAIT_SECONDS):
                if isinstance(event, Ended):
                    self._end(event)
                elif event.key in self.state.running:  # not a late event
                    self.state.running[event.key] = event
        self._watch(self.state)
        return self.state

    def stop(self) -> None:
        """Start no more cells and let the running ones save themselves."""
        self.state.is_stopping = True
        self._workers.stop()

    def _has_work(self) -> bool:
        return bool(
            self.state.running or (self._waiting and not self.state.is_stopping)
        )

    def _start_what_fits(self) -> None:
        while self._waiting and self._workers.free and not self.state.is_stopping:
            cell = self._waiting.popleft()
            self.state.running[cell.key] = Advance(cell.key, 0, 0)
            self._workers.start(
                replace(
                    self._order,
                    key=cell.key,
                    settings=cell.experiment.tables(),
                    folder_name=self._folder.folder_name(cell),
                )
            )

    def _end(self, ended: Ended) -> None:
        key, cell = ended.key, self.state.cells[ended.key]
        del self.state.running[key]
        path = self._folder.path / self._folder.folder_name(cell)
        if ended.files:
            unpack(ended.files, path)
        if ended.outcome == "lost" and self._losses[key] < MOST_LOSSES:
            self._losses[key] += 1
            self._waiting.appendleft(cell)
        elif ended.outcome in ("lost", "failed"):
            self.state.failed[key] = ended.reason
            _keep_reason(path, ended)
        elif ended.outcome == "done":
            self.state.finished.add(key)


def _keep_reason(path: Path, ended: Ended) -> None:
    """Write the reason why a cell was lost; a failed cell writes its own."""
    if ended.outcome == "lost":
        path.mkdir(exist_ok=True)
        (path / ERROR_FILE).write_text(f"the worker was lost: {ended.reason}\n")
