"""The command ``lightsplit sweep``: a worker on Ray killed, the user impatient.

That both kinds of workers come to the same ends: tests/sweeps/test_workers.py.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="the extra lightsplit[ray] is absent",
)
GRID = """
[base]
train_limit = 200
test_limit = 20
clients = 2
batch_size = 10
epochs = 25
[grid]
seed = [0, 1]
"""


@pytest.fixture
def sweep(tmp_path):
    """Return what starts a sweep in a process group of its own."""
    (tmp_path / "grid.toml").write_text(GRID)
    started = []

    def start(*options):
        command = [sys.executable, "-m", "lightsplit", "sweep"]
        command += [str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_for_checkpoint(folder, process):
    deadline = time.monotonic() + 400
    while not list(folder.glob("*/checkpoint/latest")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.05)


def records(folder):
    return [json.loads(path.read_text()) for path in folder.glob("*/record.json")]


@needs_ray
@pytest.mark.slow
def test_a_worker_on_ray_killed_in_the_middle_of_a_cell_loses_nothing(
    sweep, tmp_path, descendants
):
    process = sweep("--ray", "local")
    wait_for_checkpoint(tmp_path / "out", process)
    victims = [
        pid
        for pid, command in descendants(process.pid).items()
        if "ray::_run_remotely" in command
    ]
    assert victims
    os.kill(victims[0], signal.SIGKILL)
    said, complained = process.communicate(timeout=400)
    assert process.returncode == 0, complained
    assert "2 cells run, 0 kept from before, 0 failed, 0 left" in said
    assert {record["seed"] for record in records(tmp_path / "out")} == {0, 1}
    assert {record["epochs"] for record in records(tmp_path / "out")} == {25}


@pytest.mark.slow
def test_an_interrupted_sweep_prints_how_to_resume_and_resumes(sweep, tmp_path):
    process = sweep("--workers", "2")
    wait_for_checkpoint(tmp_path / "out", process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of the group
    _, complained = process.communicate(timeout=400)
    assert process.returncode == 130, complained
    assert "--resume" in complained
    assert not records(tmp_path / "out")
    again = sweep("--workers", "2", "--resume", "--set", "epochs=25")
    said, complained = again.communicate(timeout=400)
    assert again.returncode == 0, complained
    assert len(records(tmp_path / "out")) == 2
    assert "2 cells run" in said
