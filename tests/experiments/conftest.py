"""Small runs on the embedded digits."""

from types import SimpleNamespace

import pytest

from lightsplit.experiments import build, make_experiment, run
from lightsplit.results import RunFolder

SMALL = {
    "train_limit": 60,
    "test_limit": 20,
    "clients": 3,
    "batch_size": 10,
    "epochs": 2,
}


def small(**settings):
    return make_experiment({**SMALL, **settings})


@pytest.fixture(name="small")
def _small():
    return small


@pytest.fixture
def finish(tmp_path):
    """Return what runs an experiment to its end in a new folder."""

    def finish(**settings):
        experiment, jobs = small(**settings), []
        folder = RunFolder.create(tmp_path / str(len(list(tmp_path.iterdir()))))
        record = run(experiment, folder, started=jobs.append)
        return SimpleNamespace(folder=folder, record=record, job=jobs[0])

    return finish


@pytest.fixture
def make_job():
    return lambda **settings: build(small(**settings))
