"""Running statistics in whole runs: saved models, resumed runs, and the gain."""

import pytest
import torch
from safetensors.torch import load_file

from lightsplit.experiments import from_settings, pieces, run
from lightsplit.results import RunFolder

pytestmark = pytest.mark.slow

TASK = """
import torch
from torch import nn
from lightsplit import Task
from lightsplit.data import DATASETS

def model():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16),
                         nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10))

def task():
    return Task(name="digits by hand", model=model, head_until="1", tail_from="5",
                example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long()),
                data=lambda folder: DATASETS.create("digits", data_dir=folder),
                classes=10)
"""
PRIVATE = {"heads": "private", "codec": "raw", "epochs": 2}


@pytest.fixture
def own_task(tmp_path):
    (tmp_path / "by_hand.py").write_text(TASK)
    return {"task": str(tmp_path / "by_hand.py"), **PRIVATE}


@pytest.mark.parametrize("kind", ["per-client", "shared", "frozen"])
def test_the_saved_model_of_each_client_predicts_as_the_client(kind, finish, own_task):
    done = finish(**own_task, statistics=kind)
    inputs, _ = next(iter(done.job.test))
    for index, client in enumerate(done.job.trainer.clients):
        model = done.job.experiment.make_task().model().eval()
        model.load_state_dict(
            load_file(done.folder.path / f"model-{index}.safetensors")
        )
        torch.testing.assert_close(model(inputs), client.predict(inputs))


@pytest.mark.parametrize("kind", ["per-client", "shared", "batch", "frozen"])
def test_a_resumed_run_is_the_uninterrupted_one(
    kind, finish, own_task, small, tmp_path
):
    settings = {**own_task, "statistics": kind}
    whole = finish(**settings)
    folder = RunFolder.create(tmp_path / "resumed")
    turns = []

    def stop_soon(_job, done):
        turns.append(done)
        return len(turns) != 4  # in the second round of the first epoch

    assert run(small(**settings), folder, observe=stop_soon) is None
    jobs = []
    run(small(**settings), folder, started=jobs.append)
    expected = whole.job.trainer.server.side.state()
    got = jobs[0].trainer.server.side.state()
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_private_heads_gain_from_statistics_that_begin_with_the_first_batch(
    tmp_path, monkeypatch
):
    found = {}
    settings = {"heads": "private", "codec": "lightsplit-l", "clients": 8}
    settings |= {"batch_size": 16, "epochs": 2}
    for kind in ("shared", "per-client"):
        with monkeypatch.context() as patched:
            if kind == "shared":  # as PyTorch has it, at both ends
                patched.setattr(pieces, "begin_with_first_batch", lambda _modules: None)
            experiment = from_settings({**settings, "statistics": kind})
            record = run(experiment, RunFolder.create(tmp_path / kind))
        found[kind] = record["test_accuracy"]
    assert found["per-client"] > found["shared"] + 0.1
