"""Settings of a search, as finished and audited runs would show them."""

from pathlib import Path

import pytest

from lightsplit.advice import find_candidates
from lightsplit.experiments import from_settings
from lightsplit.experiments.labels import labels
from lightsplit.reports import Run

BITS = "lightsplit-b:bits=12"
CLASS_MEAN = {"ssim": 0.4, "reidentification": 0.02}


def entry(name, kind, **metrics):
    figures = {metric: {"mean": value} for metric, value in metrics.items()}
    return {"attack": name, "kind": kind, "form": "", "images": 9, "metrics": figures}


def make_run(codec, accuracy, ssim=None, named=None, *, bound=0.1, **settings):
    """Return a run; without figures of an attack, one that was not audited."""
    experiment = from_settings({"codec": codec, **settings})
    record = {
        "experiment": experiment.tables(),
        "labels": labels(experiment),
        "bytes": {"code": 10 if codec == BITS else 0 if codec == "none" else 1000},
        "samples": 1,
        "steps": 1,
        "test_accuracy": accuracy,
        "certificate": {"reidentification_bound": bound},
    }
    if ssim is not None:
        record["audit"] = [
            entry("class-mean", "trivial", **CLASS_MEAN),
            entry("nearest-image", "trivial", ssim=0.99, reidentification=0.99),
            entry("linear", "oracle", ssim=0.0, reidentification=named),
            entry("decoder", "oracle", ssim=ssim, reidentification=0.0),
        ]
    place = Path(f"{codec}-{experiment.split.cut}-{experiment.seed}")
    return Run(place, record, [], [])


@pytest.fixture
def candidates():
    """Return what makes the candidates of runs, each with 1,000 FLOPs."""

    def make(*runs):
        return find_candidates(runs, {run.path: 1000 for run in runs})

    return make


@pytest.fixture
def run():
    return make_run
