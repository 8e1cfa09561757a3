"""Finished runs on the embedded digits, small enough to attack in a second."""

import functools
import shutil

import pytest

from lightsplit.attacks import silent
from lightsplit.audits.victim import choose_victim, restore
from lightsplit.experiments import from_settings, run
from lightsplit.results import RunFolder

SMALL = {
    "train_limit": 240,
    "test_limit": 40,
    "clients": 3,
    "batch_size": 20,
    "epochs": 2,
    "turn_steps": 1,
    "cut": "l1",
}


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return what gives a finished run, the same one again and again: only to read."""

    @functools.cache
    def finished(**settings):
        folder = RunFolder.create(tmp_path_factory.mktemp("run") / "run")
        run(from_settings({**SMALL, **settings}), folder)
        return folder

    return finished


@pytest.fixture
def own_run(trained, tmp_path):
    """Return a copy of a finished run, to write to."""

    def copy(**settings):
        path = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(trained(**settings).path, path)
        return RunFolder.open(path)

    return copy


@pytest.fixture
def victim_of(trained):
    def choose(client=0, images=12, seed=0, **settings):
        job = restore(trained(**settings))
        return choose_victim(job, client=client, images=images, seed=seed)

    return choose


@pytest.fixture
def quiet():
    return lambda _title: silent
