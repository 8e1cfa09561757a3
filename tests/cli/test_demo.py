from importlib import import_module

import pytest

demo = import_module("lightsplit.cli.demo")


@pytest.mark.slow
def test_the_demo_compares_its_runs_advises_and_keeps_them(
    lightsplit, tmp_path, monkeypatch
):
    quicker = {"attacks": ["linear", "label-hint"], "images": 20}
    monkeypatch.setattr(demo, "AUDIT", quicker)
    out = ["--epochs", 1, "--out", tmp_path / "demo"]
    said = lightsplit("demo", *out).stdout
    for name in ("none", "raw", "lightsplit-f 32x", "lightsplit-b 12 bits"):
        assert name in said
    assert "Which setting names at most 10% of the images" in said
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Every setting of the search" in page
    records = list((tmp_path / "demo").glob("*/record.json"))
    assert len(records) == len(demo.METHODS)
    times = [path.stat().st_mtime_ns for path in records]
    assert lightsplit("demo", *out).stdout == said  # nothing is run again
    assert times == [path.stat().st_mtime_ns for path in records]


def test_a_place_that_cannot_hold_the_runs_is_refused(refused, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "file" in refused("demo", "--out", tmp_path / "file")


def test_the_demo_needs_an_epoch(lightsplit):
    lightsplit("demo", "--epochs", 0, code=2)
