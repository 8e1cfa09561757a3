"""A simulation whose worker processes are killed or interrupted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab.processes import wait_until

SETTINGS = [
    *("--rounds", "parallel", "--clients", "6", "--owners-per-round", "4"),
    *("--train-limit", "240", "--test-limit", "40", "--batch-size", "8"),
    *("--epochs", "20", "--projection", "dct", "--wcc", "0.01"),
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def command(*arguments):
    return [sys.executable, "-m", "lightsplit", "train", *map(str, arguments)]


def start(*arguments):
    return subprocess.Popen(
        command(*arguments, "--checkpoint-every", 6, "--workers", 2),
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that Ctrl-C can be sent to all of it
    )


def newest(folder):
    """Return the name of a run's newest checkpoint, or an empty text."""
    latest = folder / "checkpoint" / "latest"
    return latest.read_text() if latest.exists() else ""


@pytest.fixture
def crew(descendants):
    """Return the worker processes of a run that is in the middle of its rounds.

    It is once it has saved another checkpoint than the one that it began with.
    """

    def crew(process, folder, before=""):
        def workers():
            assert process.poll() is None, process.communicate()
            found = descendants(process.pid)
            return [one for one, name in found.items() if "spawn_main" in name]

        def has_gone_on():
            assert process.poll() is None, process.communicate()
            return newest(folder) != before

        wait_until(has_gone_on, "a checkpoint", 300)
        return wait_until(lambda: len(workers()) == 2 and workers(), "two workers", 300)

    return crew


def test_a_run_whose_workers_are_struck_says_so_and_goes_on(
    crew, descendants, tmp_path
):
    whole, struck = tmp_path / "whole", tmp_path / "struck"
    subprocess.run(command(*SETTINGS, "--out", whole), check=True, env=ENVIRONMENT)

    process = start(*SETTINGS, "--out", struck)
    os.kill(crew(process, struck)[1], signal.SIGKILL)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 1
    assert told.count("error: ") == 1
    assert "a worker process ended with code -9" in " ".join(told.split())
    assert "Traceback" not in told

    before = newest(struck)
    process = start("--resume", struck)
    workers = crew(process, struck, before)
    process.kill()  # the main process: its workers end by themselves
    process.communicate(timeout=300)
    wait_until(lambda: not any(map(is_alive, workers)), "the end of the workers", 120)

    before = newest(struck)
    process = start("--resume", struck)
    crew(process, struck, before)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert (process.returncode, told.count("interrupted; resume with")) == (130, 1)
    assert "Traceback" not in told

    subprocess.run(
        command("--resume", struck, "--workers", 3), check=True, env=ENVIRONMENT
    )
    ours, theirs = ((one / "model.safetensors").read_bytes() for one in (struck, whole))
    assert ours == theirs
    records = [json.loads((one / "record.json").read_text()) for one in (struck, whole)]
    assert records[0]["bytes"] == records[1]["bytes"]


def is_alive(pid):
    try:
        found = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return found.rpartition(")")[2].split()[0] != "Z"
