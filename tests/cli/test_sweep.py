import fcntl
import json
import sys

import pytest

pytestmark = pytest.mark.slow

GRID = """
title = "A tiny grid"
[base]
train_limit = 60
test_limit = 20
clients = 3
batch_size = 10
epochs = 1
[[cells]]
codec = "raw"
[[cells]]
codec = "lightsplit-f"
ratio = [8, 16]
"""


@pytest.fixture
def grid(tmp_path):
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path / "grid.toml"


def test_a_dry_run_shows_every_cell_and_its_cost_and_runs_none(
    lightsplit, grid, tmp_path
):
    shown = lightsplit("sweep", grid, "--dry-run", "--out", tmp_path / "out").stdout
    assert "A tiny grid" in shown
    for codec in ("l2-raw-shared", "lightsplit-f-8x", "lightsplit-f-16x"):
        assert codec in shown
    assert "3 cells" in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_sweep_leaves_records_and_names_the_next_command(lightsplit, grid, tmp_path):
    out = ["--out", tmp_path / "out", "--workers", 1]
    said = lightsplit("sweep", grid, *out, "--set", "ratio=8", "--tensorboard").stdout
    assert "2 cells run" in said
    assert "lightsplit report" in said
    found = list((tmp_path / "out").glob("*/record.json"))
    codecs = {
        json.loads(path.read_text())["experiment"]["codec"]["name"] for path in found
    }
    assert codecs == {"raw", "lightsplit-f"}
    assert len(list((tmp_path / "out").glob("*/tensorboard/*"))) == 2
    again = lightsplit("sweep", grid, *out, "--set", "ratio=8", "--resume").stdout
    assert "0 cells run, 2 kept from before" in again
    kept = lightsplit("sweep", tmp_path / "out" / "sweep.toml", *out, "--resume").stdout
    assert "0 cells run, 2 kept from before" in kept


@pytest.mark.slow
def test_a_failed_cell_is_listed_and_the_exit_code_says_so(lightsplit, grid, tmp_path):
    options = ["--out", tmp_path / "out", "--workers", 1]
    options += ["--set", "train_limit=60", "--set", "weights=nofile"]
    result = lightsplit("sweep", grid, *options, "--set", "ratio=8", code=1)
    assert "2 failed" in result.stdout
    assert result.stderr.count("nofile does not exist") == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--set", "epoch=3"], "did you mean 'epochs'?"),
        (["--set", "epochs"], "expected key=value"),
        (["--set", "ratio=1e9"], "lightsplit-f-1e+09x"),
        (["--set", "clients=1000"], "1000 clients need 2 samples"),
        (["--scale", "paper"], "unknown scale 'paper'"),
    ],
)
def test_an_invalid_sweep_is_refused_before_any_file_is_made(
    refused, grid, tmp_path, options, reason
):
    message = refused("sweep", grid, "--out", tmp_path / "out", *options)
    assert reason in message
    assert not (tmp_path / "out").exists()


def test_every_cell_gets_the_task_that_is_given(lightsplit, refused, grid):
    shown = lightsplit("sweep", grid, "--task", "mnist", "--dry-run").stdout
    assert "mnist-l2-raw-shared" in shown
    assert "digits" not in shown
    assert "unknown task 'nope'" in refused("sweep", grid, "--task", "nope")


def test_an_unknown_sweep_is_refused_with_the_nearest(refused):
    assert "did you mean 'utility'?" in refused("sweep", "utilty")


def test_a_folder_with_anything_in_it_is_left_alone(refused, grid, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    assert "--resume" in refused("sweep", grid, "--out", tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_two_sweeps_never_share_a_folder(refused, grid, tmp_path):
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = refused("sweep", grid, "--out", tmp_path / "out", "--resume")
    assert "another sweep is running" in message


@pytest.mark.parametrize(
    ("extra", "options"),
    [("ray", ["--ray", "local"]), ("tensorboard", ["--tensorboard"])],
)
def test_a_missing_extra_is_named_with_its_install_line(
    refused, grid, tmp_path, monkeypatch, extra, options
):
    monkeypatch.setitem(sys.modules, extra, None)
    message = refused("sweep", grid, "--out", tmp_path / "out", *options)
    assert f"pip install 'lightsplit[{extra}]'" in message
    assert not (tmp_path / "out").exists()


def test_the_experiments_of_the_paper_are_listed_with_their_scales(lightsplit):
    entries = json.loads(lightsplit("list", "experiments", "--json").stdout)
    assert {"utility", "compaction", "clients", "lift-back"} <= entries.keys()
    assert {"unsplit", "sdar", "fora"} <= entries.keys()
    assert all("small" in facts["scales"].split(", ") for facts in entries.values())
    assert "paper" in entries["utility"]["scales"].split(", ")
