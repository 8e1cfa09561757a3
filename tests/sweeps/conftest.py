"""Sweeps of tiny runs, and workers without processes."""

from collections import deque

import pytest

from lightsplit.sweeps import Order, SweepFolder, SweepRun, expand, read_sweep
from lightsplit.sweeps.work import run_cell

TINY = """
[base]
train_limit = 60
test_limit = 20
clients = 3
batch_size = 10
epochs = 2
"""


class InlineWorkers:
    """Runs cells in this process, one per call of ``events``.

    ``faults`` says what becomes of the n-th start in place of a run: an Ended.
    """

    def __init__(self, faults=None):
        self.started = []
        self.faults = faults or {}
        self._orders = deque()
        self._wants_stop = False

    free = 1

    def start(self, order):
        self.started.append(order.key)
        self._orders.append(order)
        self.free = 0

    def events(self, timeout_seconds):
        order = self._orders.popleft()
        self.free = 1
        events = []
        fault = self.faults.get(len(self.started))
        if fault is not None:
            return [fault(order)]
        events.append(run_cell(order, events.append, lambda: self._wants_stop))
        return events

    def stop(self):
        self._wants_stop = True

    def close(self):
        pass


@pytest.fixture
def write_sweep(tmp_path):
    """Return what writes a sweep file of tiny runs and reads it back."""

    def write(text, **options):
        path = tmp_path / "grid.toml"
        path.write_text(TINY + text)
        return read_sweep(path, **options)

    return write


@pytest.fixture
def sweep_run(tmp_path):
    """Return what prepares a run of some cells in a folder."""

    def prepare(sweep, workers, **options):
        folder = SweepFolder(tmp_path / "sweep")
        folder.path.mkdir(exist_ok=True)
        order = Order("", {}, str(folder.path), "")
        return SweepRun(expand(sweep), folder, workers, order=order, **options)

    return prepare


@pytest.fixture
def inline():
    return InlineWorkers
