"""The command line as a real process: signals and exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "lightsplit", "train"]
LONG = ["--epochs", "12", "--train-limit", "700", "--test-limit", "50", "--json"]


# Another number of threads adds in another order, and rounds otherwise.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def wait_for(path, process, seconds=240):
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interrupted_run_prints_how_to_resume_and_ends_like_an_undisturbed_one(
    lightsplit, tmp_path
):
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    process = subprocess.Popen(
        [*COMMAND, *LONG, "--checkpoint-every", "1", "--out", stopped],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    wait_for(stopped / "checkpoint" / "latest", process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=240)
    assert (process.returncode, stdout) == (130, "")
    assert f"lightsplit train --resume {stopped}" in stderr
    assert "Traceback" not in stderr
    assert not (stopped / "record.json").exists()
    lightsplit("train", "--resume", stopped, "--json")
    lightsplit("train", *LONG, "--out", whole)
    model = "model.safetensors"
    assert (stopped / model).read_bytes() == (whole / model).read_bytes()


@pytest.mark.slow
def test_a_process_prints_the_record_and_an_error_without_a_traceback(tmp_path):
    def train():
        command = [*COMMAND, "--max-steps", "2", "--json", "--out", tmp_path / "run"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good, bad = train(), train()
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["steps"] == 2
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("error: ")
    assert len(bad.stderr.splitlines()) == 1


@pytest.mark.slow
def test_grpc_does_not_log_an_error_that_we_report(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "lightsplit", "serve", "--clients", "2"]
        command += ["--address", address, "--out", str(tmp_path / "run")]
        environment = {k: v for k, v in os.environ.items() if k != "GRPC_VERBOSITY"}
        bad = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
    assert bad.returncode == 1
    assert bad.stderr.startswith(f"error: cannot listen on {address}: ")
    assert len(bad.stderr.splitlines()) == 1
