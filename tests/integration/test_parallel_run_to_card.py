"""A run of parallel rounds is audited, shown, compared and exported like any other.

Over the network, with a recording and predictions, this is the hospital's walk.
"""

import json

import pytest

SMALL = ("--clients", 2, "--train-limit", 60, "--test-limit", 20, "--epochs", 1)


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_parallel_run_goes_from_training_to_the_card(heads, run, tmp_path):
    folder, turns = tmp_path / "rounds", tmp_path / "turns"
    settings = (*SMALL, "--batch-size", 15, "--heads", heads)
    run("train", *settings, "--rounds", "parallel", "--out", folder)
    run("train", *settings, "--out", turns)
    run("audit", folder, "--attack", "linear", "--images", 4)
    record = json.loads((folder / "record.json").read_text())
    assert "linear" in {entry["attack"] for entry in record["audit"]}
    run("report", folder, "--card")
    assert "linear" in (folder / "card.html").read_text()
    assert (folder / "card.pdf").read_bytes().startswith(b"%PDF")
    told = run("compare", folder, turns)
    assert "same settings" not in told  # rounds and turns are two experiments
    run("export", folder, "--part", "whole")
    assert (folder / "export" / "model.pt2").is_file()
