"""Owners of parallel rounds in worker processes: the run is that of one process."""

import json

import pytest

from lightsplit.errors import ConfigError, RunError
from lightsplit.experiments import build, from_settings, run
from lightsplit.results import RunFolder
from lightsplit.runs.rounds import Attendance

SMALL = {
    "rounds": "parallel",
    "clients": 4,
    "train_limit": 64,
    "test_limit": 24,
    "batch_size": 8,
    "epochs": 2,
    "lr_schedule": "cosine",
    "projection": "dct",
}
KINDS = {
    "shared": {"heads": "shared", "objective": "disco:0.1", "clip": 0.5},
    "private": {"heads": "private", "objective": "wcc:0.01", "owners_per_round": 3},
    "one owner": {"clients": 1, "train_limit": 16, "protect_labels": "max-norm"},
}
COMINGS = [  # one leaves after each stage, and then a round has fewer than the workers
    Attendance((0, 1, 2, 3), (0, 1, 3), (0, 1), (0,)),
    Attendance.full([2]),
    Attendance.full([1, 2, 3]),
]


def result(folder):
    """Return everything that a run leaves behind at its end, without times."""
    newest = folder.checkpoint / (folder.checkpoint / "latest").read_text().strip()
    saved = [*newest.glob("*.safetensors"), *folder.path.glob("*.safetensors")]
    progress = json.loads((newest / "progress.json").read_text())["progress"]
    told = [*folder.read_metrics(), folder.read_record(), progress]
    for one in (*told, *progress["history"]):
        del one["seconds"]
    return {one.name: one.read_bytes() for one in saved}, told


def finish(experiment, path, workers, **options):
    """Run to the end, with so many workers after each interruption."""
    folder = RunFolder(path)
    *parted, last = workers
    for count in parted:
        rounds = iter([True, False])
        stopped = run(
            experiment,
            folder,
            workers=count,
            observe=lambda *_, rounds=rounds: next(rounds),
            **options,
        )
        assert stopped is None
    run(experiment, folder, workers=last, **options)
    return result(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        ("shared", (3,)),
        ("shared", (2, 1)),
        ("private", (2, 1)),
        ("one owner", (2,)),
    ],
    ids=str,
)
def test_any_number_of_workers_gives_the_run_of_one_process(kind, workers, tmp_path):
    experiment = from_settings({**SMALL, **KINDS[kind]})
    expected = finish(experiment, tmp_path / "alone", (None,))
    got = finish(experiment, tmp_path / "crewed", workers)
    assert len(expected[0]) >= 3
    assert got == expected


@pytest.mark.slow
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_owners_in_workers_leave_a_round_as_they_do_in_one_process(heads, tmp_path):
    experiment = from_settings({**SMALL, "heads": heads})
    file = tmp_path / "participation.jsonl"
    lines = [one.to_line(number) for number, one in enumerate(COMINGS)]
    file.write_text("\n".join(lines) + "\n")
    alone, crewed = (
        finish(experiment, tmp_path / str(count), (count,), participation=file)
        for count in (None, 2)
    )
    assert crewed == alone


@pytest.mark.parametrize("rounds", ["turns", "splitfed-v1"])
def test_workers_compute_the_owners_of_parallel_rounds_alone(rounds):
    with pytest.raises(ConfigError, match=f"--workers needs --rounds .*{rounds}"):
        build(from_settings({**SMALL, "rounds": rounds}), workers=2)


def test_no_workers_are_not_a_number_of_workers():
    with pytest.raises(ConfigError, match="workers must be at least 1, got 0"):
        build(from_settings({**SMALL, "rounds": "parallel"}), workers=0)


TASK = """
import torch
from torch import nn
from lightsplit import Task

class Faulty(torch.utils.data.Dataset):
    targets = [0, 1] * 16

    def __len__(self):
        return 32

    def __getitem__(self, row):
        if row == 20:
            raise {error}
        return torch.full((4,), float(row)), row % 2

def task():
    return Task(
        name="faulty",
        model=lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)),
        head_until="0",
        tail_from="2",
        example=lambda: (torch.zeros(2, 4), torch.zeros(2).long()),
        data=lambda _folder: (Faulty(), Faulty()),
        classes=2,
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "raised", "text"),
    [
        ("__import__('lightsplit').errors.DataError('row 20')", RunError, "^row 20$"),
        ("KeyError('row 20')", RuntimeError, "in a worker process:\n.*Traceback"),
    ],
    ids=["expected", "unexpected"],
)
def test_an_error_in_a_worker_ends_the_run(error, raised, text, tmp_path):
    file = tmp_path / "faulty.py"
    file.write_text(TASK.replace("{error}", error))
    experiment = from_settings(
        {
            "task": str(file),
            "rounds": "parallel",
            "clients": 2,
            "batch_size": 4,
            "codec": "raw",
        }
    )
    with pytest.raises(raised, match=f"(?s){text}"):
        run(experiment, RunFolder(tmp_path / "run"), workers=2)
