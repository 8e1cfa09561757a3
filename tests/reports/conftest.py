"""Records of real tiny runs, with audits added to them."""

import functools
import json

import numpy as np
import pytest
from PIL import Image

from lightsplit.experiments import from_settings, run
from lightsplit.experiments.labels import labels
from lightsplit.reports import find_runs, make_report, write_page
from lightsplit.results import RunFolder

TINY = {"train_limit": 60, "test_limit": 20, "clients": 3, "batch_size": 10}
METHODS = {
    "raw": {"codec": "raw"},
    "fixed-8": {"codec": "lightsplit-f", "ratio": 8},
    "fixed-16": {"codec": "lightsplit-f", "ratio": 16},
    "compact": {"codec": "lightsplit-f", "ratio": 8, "wcc": 0.01},
}


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory):
    """Return a folder with a finished run of each method; not to be changed."""
    base = tmp_path_factory.mktemp("real")
    for name, settings in METHODS.items():
        experiment = from_settings({**TINY, "epochs": 2, **settings})
        run(experiment, RunFolder.create(base / name))
    return base


@pytest.fixture(scope="session")
def write_run(real_runs):
    """Return what writes a finished run like a real one, but for some settings."""

    def write(base, name, like="raw", *, audit=(), figures=None, **settings):
        folder = RunFolder.create(base / name)
        record = json.loads((real_runs / like / "record.json").read_text())
        given = {**TINY, "epochs": 2, **METHODS[like], **settings}
        experiment = from_settings(given)
        record["experiment"] = experiment.tables()
        record["labels"] = labels(experiment)
        record["seed"] = experiment.seed
        record.update(figures or {})
        if audit:
            record["audit"] = list(audit)
        folder.write_experiment(experiment.to_toml())
        folder.write_record(record)
        lines = (real_runs / like / "metrics.jsonl").read_text().splitlines()
        folder.write_metrics(map(json.loads, lines))
        return folder

    return write


@pytest.fixture
def make_run(write_run, tmp_path):
    """Return what writes such a run where ``runs_in`` finds it."""
    return functools.partial(write_run, tmp_path / "runs")


@pytest.fixture
def runs_in(tmp_path):
    """Return what reads all that ``make_run`` has written."""
    return lambda: find_runs([tmp_path / "runs"])


@pytest.fixture(scope="session")
def attack():
    return make_attack


def make_attack(name="decoder", ssim=0.5, *, form="adaptive", kind="oracle", **more):
    """Return an entry of an audit."""
    metrics = {"ssim": ssim, "mse": 1 - ssim, **more.pop("metrics", {})}
    return {
        "attack": name,
        "form": form,
        "kind": kind,
        "threat_model": "codes and images of other clients",
        "budget": "quick",
        "images": 10,
        "seed": 0,
        "seconds": 1.0,
        "metrics": {
            metric: {"mean": v, "low": v - 0.1, "high": v + 0.1, "worst": v + 0.2}
            for metric, v in metrics.items()
        },
        "beats_trivial": more.pop("beats_trivial", True),
        "notes": [],
    }


def make_guess(message):
    """Return an entry of label inference, as an audit writes it."""
    reached = 0.9 if message == "output_gradient" else 0.4
    figures = {"mean": reached, "low": reached - 0.05, "high": reached + 0.05}
    entry = make_attack("label-hint", kind="labels", form="", beats_trivial=None)
    accuracy = {"accuracy": figures}
    return {**entry, "message": message, "chance": 0.1, "metrics": accuracy}


@pytest.fixture(scope="session")
def audited(write_run, tmp_path_factory):
    """Return the report of two audited methods under two seeds."""
    base = tmp_path_factory.mktemp("audited")
    for seed in range(2):
        for like, ssim in (("raw", 0.9), ("fixed-8", 0.6)):
            audit = [
                make_attack("mean", 0.3, kind="trivial", form="", beats_trivial=None),
                make_attack("decoder", ssim + 0.01 * seed),
                *(make_guess(message) for message in ("code", "output_gradient")),
            ]
            name = f"{like}-{seed}"
            folder = write_run(base, name, like, seed=seed, audit=audit)
            (folder.path / "images").mkdir()
            picture = np.full((8, 24), 128, np.uint8)
            Image.fromarray(picture).save(folder.path / "images" / "audit-decoder.png")
    return make_report(*find_runs([base]), title="Tom & <Jerry>")


@pytest.fixture(scope="session")
def page(audited, tmp_path_factory):
    """Return the file of that report."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(audited, path)
    return path
