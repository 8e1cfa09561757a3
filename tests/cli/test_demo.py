from dataclasses import replace
from importlib import import_module

import pytest

from lightsplit.cli.demo import RUNS
from lightsplit.results import RunFolder

demo = import_module("lightsplit.cli.demo")


@pytest.mark.slow
def test_the_demo_compares_its_runs_and_keeps_them(
    lightsplit, refused, tmp_path, monkeypatch
):
    quicker = replace(demo.AUDIT, attacks=("linear", "label-hint"))
    monkeypatch.setattr(demo, "AUDIT", quicker)
    result = lightsplit("demo", "--epochs", 1, "--out", tmp_path / "demo")
    left = sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert left == sorted([*(name.replace(" ", "-") for name in RUNS), "report.html"])
    for name in RUNS:
        assert name in result.stdout
    raw = RunFolder.open(tmp_path / "demo" / "raw").read_record()
    assert raw["step_ratio"] == 1.0
    assert "not an empty folder" in refused("demo", "--out", tmp_path / "demo")


def test_a_place_that_cannot_hold_the_runs_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "cannot make" in refused("demo", "--out", tmp_path / "file")


def test_the_demo_needs_an_epoch(lightsplit):
    lightsplit("demo", "--epochs", 0, code=2)
