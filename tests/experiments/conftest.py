"""Small runs on the embedded digits."""

import functools
from types import SimpleNamespace

import pytest

from lightsplit.experiments import build, from_settings, run
from lightsplit.results import RunFolder

SMALL = {
    "train_limit": 60,
    "test_limit": 20,
    "clients": 3,
    "batch_size": 10,
    "epochs": 2,
    "turn_steps": 1,
}


def make_small(**settings):
    return from_settings({**SMALL, **settings})


def finish_in(path, settings):
    jobs, folder = [], RunFolder.create(path)
    record = run(make_small(**settings), folder, started=jobs.append)
    return SimpleNamespace(folder=folder, record=record, job=jobs[0])


@pytest.fixture
def small():
    return make_small


@pytest.fixture
def make_job():
    return lambda **settings: build(make_small(**settings))


@pytest.fixture
def finish(tmp_path):
    """Return what runs an experiment to its end in a new folder."""
    return lambda **settings: finish_in(
        tmp_path / str(len(list(tmp_path.iterdir()))), settings
    )


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Return what gives a finished run, the same one again and again: only to read."""

    @functools.cache
    def finished(**settings):
        return finish_in(tmp_path_factory.mktemp("run"), settings)

    return finished
