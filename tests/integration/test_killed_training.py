"""A training process that is killed and resumed ends like an undisturbed one."""

import signal

from lab.processes import wait_until

SETTINGS = [
    *("--train-limit", "320", "--test-limit", "50", "--batch-size", "16"),
    *("--clients", "4", "--epochs", "9", "--projection", "dct", "--wcc", "0.01"),
    *("--turn-steps", "1"),
]


def wait_for_checkpoint(folder, step, process):
    """Wait until a run has saved this step or a later one."""
    latest = folder / "latest"

    def is_there():
        assert process.code is None, "the run ended before it could be killed"
        if not latest.exists():
            return False
        return int(latest.read_text().removeprefix("step-")) >= step

    wait_until(is_there, f"a checkpoint of step {step}")


def test_a_run_killed_twice_ends_like_one_that_was_not(run, start, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run("train", *SETTINGS, "--out", whole)
    arguments = [*SETTINGS, "--out", killed, "--checkpoint-every", 3]
    for step in (3, 33):
        process = start("killed", "train", *arguments)
        wait_for_checkpoint(killed / "checkpoint", step, process)
        process.signal(signal.SIGKILL)
        process.wait()
        assert not (killed / "record.json").exists()
        arguments = ["--resume", killed, "--checkpoint-every", 3]
    run("train", "--resume", killed)
    ours = (killed / "model.safetensors").read_bytes()
    assert ours == (whole / "model.safetensors").read_bytes()
