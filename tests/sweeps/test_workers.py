"""The same sweeps on processes of this machine and on Ray: the same ends.

One pool of each kind serves all tests here: to start one takes longer than its cells.
"""

import functools
import importlib.util
import json
import os
import signal
from types import SimpleNamespace

import pytest
import torch

from lightsplit.audits import AuditOptions
from lightsplit.experiments import run
from lightsplit.results import RunFolder
from lightsplit.sweeps import LocalWorkers, Order, RayWorkers, SweepFolder, SweepRun
from lightsplit.sweeps import expand as cells_of
from lightsplit.sweeps.sweep_file import Sweep
from lightsplit.sweeps.work import ERROR_FILE

pytestmark = pytest.mark.slow

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="the extra lightsplit[ray] is absent",
)
KINDS = [
    pytest.param(("spawn_main", lambda: LocalWorkers(2)), id="processes"),
    pytest.param(
        ("_run_remotely", lambda: RayWorkers("local")), id="ray", marks=needs_ray
    ),
]
TINY = {
    "train_limit": 60,
    "test_limit": 20,
    "batch_size": 10,
    "clients": 3,
    "epochs": 2,
}
LONG = {**TINY, "epochs": 150, "eval_every": 20}
AUDIT = AuditOptions(attacks=("linear",), images=6, auxiliary=30)


@pytest.fixture(scope="module", params=KINDS)
def pool(request):
    """Workers, and what the command line of one that runs a cell has in it."""
    command, make = request.param
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = make()
    yield SimpleNamespace(workers=workers, command=command)
    workers.close()
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def prepare(pool):
    """Return what prepares the sweep of some settings in a folder."""

    def call(path, common, cells=({},), **options):
        order = Order("", {}, str(path), "", audit=options.pop("audit", None))
        cells = cells_of(Sweep("grid", common=common, cells=cells))
        folder = SweepFolder(path)
        return SweepRun(cells, folder, pool.workers, order=order, **options)

    return call


@pytest.fixture(scope="module")
def swept(prepare, tmp_path_factory):
    """A sweep with two good cells, the first of them asked for twice, and a bad one."""
    path = tmp_path_factory.mktemp("swept")
    cells = ({"seed": [0, 1]}, {"seed": 0}, {"clients": 99})
    state = prepare(path, TINY, cells, audit=AUDIT).run()
    return SimpleNamespace(path=path, state=state)


def records(path):
    return [json.loads(file.read_text()) for file in path.glob("*/record.json")]


def weights(path):
    return {file.parent.name: file.read_bytes() for file in path.glob("*/model.*")}


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """Return what gives the weights of cells that were run here, each once."""

    @functools.cache
    def trained(cell):
        path = tmp_path_factory.mktemp("alone")
        run(cell.experiment, RunFolder.create(path / cell.folder_name))
        return weights(path)

    return lambda cells: {k: v for cell in cells for k, v in trained(cell).items()}


def test_every_cell_gives_the_same_as_alone(swept, alone):
    good = [swept.state.cells[key] for key in swept.state.finished]
    assert sorted(record["seed"] for record in records(swept.path)) == [0, 1]
    assert weights(swept.path) == alone(good)


def test_every_cell_was_attacked(swept):
    for record in records(swept.path):
        assert "linear" in {entry["attack"] for entry in record["audit"]}


def test_equal_cells_were_run_once(swept):
    assert len(swept.state.cells) == 3
    assert len(swept.state.finished) == 2


def test_a_failed_cell_did_not_stop_the_others_and_kept_its_error(swept):
    (key,) = swept.state.failed
    assert "99 clients" in swept.state.failed[key]
    (file,) = swept.path.glob(f"*-{key}/{ERROR_FILE}")
    assert swept.state.failed[key] in file.read_text()


def test_finished_cells_are_kept(swept, prepare):
    before = weights(swept.path), records(swept.path)
    state = prepare(swept.path, {**TINY, "seed": [1, 0]}, audit=AUDIT).run()
    assert (len(state.kept), len(state.finished)) == (2, 0)
    assert (weights(swept.path), records(swept.path)) == before


def has_checkpoint(path):
    return bool(list(path.glob("*/checkpoint/latest")))


def test_the_cell_of_a_killed_worker_is_run_again_and_ends_the_same(
    pool, prepare, alone, tmp_path, descendants
):
    killed = []

    def kill(_state):
        if killed or not has_checkpoint(tmp_path):
            return
        below = descendants(os.getpid()).items()
        busy = [pid for pid, command in below if pool.command in command]
        for pid in busy:
            os.kill(pid, signal.SIGKILL)
        killed.extend(busy)

    state = prepare(tmp_path, LONG, watch=kill).run()
    assert killed
    assert len(state.finished) == 1
    assert weights(tmp_path) == alone(state.cells.values())


def test_an_interrupted_sweep_resumes_and_ends_the_same(prepare, alone, tmp_path):
    def stop(_state):
        if has_checkpoint(tmp_path):
            sweep.stop()

    sweep = prepare(tmp_path, LONG, watch=stop)
    assert len(sweep.run().left) == 1
    assert not records(tmp_path)
    state = prepare(tmp_path, LONG).run()
    assert len(state.finished) == 1
    assert weights(tmp_path) == alone(state.cells.values())
