"""A training process that is killed and resumed ends like an undisturbed one."""

import signal
import subprocess
import sys
import time

SETTINGS = [
    *("--train-limit", "320", "--test-limit", "50", "--batch-size", "16"),
    *("--clients", "4", "--epochs", "3", "--projection", "dct", "--wcc", "0.01"),
    *("--turn-steps", "1"),
]


def command(*arguments):
    return [sys.executable, "-m", "lightsplit", "train", *arguments]


def wait_for(path, process, seconds=90):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.005)


def test_a_run_killed_twice_ends_like_one_that_was_not(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(*SETTINGS, "--out", str(whole)), check=True)
    arguments = [*SETTINGS, "--out", str(killed), "--checkpoint-every", "3"]
    for step in (3, 33):
        process = subprocess.Popen(command(*arguments))
        wait_for(killed / "checkpoint" / f"step-{step:08d}", process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (killed / "record.json").exists()
        arguments = ["--resume", str(killed), "--checkpoint-every", "3"]
    subprocess.run(command("--resume", str(killed)), check=True)
    ours = (killed / "model.safetensors").read_bytes()
    assert ours == (whole / "model.safetensors").read_bytes()
