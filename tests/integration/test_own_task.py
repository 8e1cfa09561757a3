"""A user's own tasks, with every command, as processes.

One is a regression whose inputs are a dictionary of whole numbers and floats; the other
one has classes. Both are in own_task/my_task.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab.faults import left_behind
from lab.runs import NAMES, assert_same_weights, reference

import lightsplit

FOLDER = Path(__file__).parent / "own_task"
REGRESSION = str(FOLDER / "my_task.py")
CLASSES = f"{REGRESSION}:classes"
TASKS = {"regression": REGRESSION, "classes": CLASSES}
SMALL = ("--clients", 2, "--batch-size", 16, "--lr", 0.01)


@pytest.fixture(params=TASKS)
def task(request):
    return TASKS[request.param]


def record_of(folder):
    return json.loads((folder / "record.json").read_text())


def history_of(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_resumed_run_is_the_uninterrupted_one(task, run, tmp_path):
    part, whole = tmp_path / "part", tmp_path / "whole"
    train = ("train", "--task", task, *SMALL)
    run(*train, "--epochs", 2, "--out", part)
    run("train", "--resume", part, "--epochs", 5)
    run(*train, "--epochs", 5, "--out", whole)
    same = "model.safetensors"
    assert (part / same).read_bytes() == (whole / same).read_bytes()
    assert record_of(part)["monitor"] == record_of(whole)["monitor"]
    assert record_of(part)["bytes"] == record_of(whole)["bytes"]


@pytest.mark.parametrize(
    ("monitor", "best"), [("r2", max), ("mse", min), ("loss", min)]
)
def test_best_and_patience_follow_the_monitor(monitor, best, run, tmp_path):
    train = ("train", "--task", REGRESSION, "--set", f"task.monitor={monitor}")
    train = (*train, *SMALL, "--codec", "raw", "--epochs", 6, "--patience", 1)
    # So slow that each evaluation is a new best.
    run(*train, "--lr", 0.001, "--out", tmp_path / "better")
    record, history = record_of(tmp_path / "better"), history_of(tmp_path / "better")
    values = [line[f"test_{monitor}"] for line in history]
    assert record["stopped_by"] == "schedule"
    assert record["monitor"] == {
        "name": monitor,
        "is_higher_better": best is max,
        "last": values[-1],
        "best": best(values),
    }
    assert record[f"best_test_{monitor}"] == best(values)
    run(*train, "--lr", 1e-30, "--out", tmp_path / "still")
    assert record_of(tmp_path / "still")["stopped_by"] == "patience"
    assert len(history_of(tmp_path / "still")) == 2


def test_split_equals_unsplit(task, run):
    answer = run("verify", "--task", task, "--steps", 5)
    assert "split equals unsplit" in answer
    assert answer.count("same") == 4


def test_costs_are_those_of_the_run(task, run, tmp_path):
    settings = ("--task", task, *SMALL, "--epochs", 2, "--codec", "raw")
    counts = ("--samples", 64, "--test-samples", 24)
    foreseen = json.loads(run("cost", *settings, *counts, "--json"))
    run("train", *settings, "--out", tmp_path / "run")
    assert foreseen[0]["traffic"]["bytes"] == record_of(tmp_path / "run")["bytes"]
    without_tests = json.loads(run("cost", *settings, "--samples", 64, "--json"))
    assert without_tests[0]["computation"] == foreseen[0]["computation"]


def test_costs_of_unknown_data_are_not_guessed(run):
    assert "give --samples" in run("cost", "--task", REGRESSION, *SMALL, code=1)


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_the_network_is_one_process_bit_for_bit(task, heads, make_cluster):
    settings = {"task": task, "heads": heads, "lr": 0.01, "evaluate": "every"}
    cluster = make_cluster(settings)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    assert_same_weights(left_behind(cluster), reference(**settings))


def test_predictions_over_the_wire_have_the_tasks_figures(
    task, run, make_cluster, tmp_path
):
    settings = {"task": task, "epochs": 1}
    cluster = make_cluster(settings)
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    record = record_of(tmp_path / "server")
    port = cluster.start_server()
    answers = tmp_path / "answers.csv"
    said = run(
        *("predict", *cluster.settings, "--address", f"127.0.0.1:{port}"),
        *("--name", "bob", "--key", tmp_path / "clients.key"),
        *("--secret", tmp_path / "seed.secret", "--json", "--out", answers),
    )
    figures = json.loads(said)
    assert figures.pop("samples") == 24
    expected = {
        name.removeprefix("test_"): value
        for name, value in record.items()
        if name.startswith("test_")
    }
    assert figures == pytest.approx(expected)  # a mean over the owners, all the same
    assert answers.read_text().count("\n") == 25


def test_a_sweep_a_report_and_a_comparison(task, run, tmp_path):
    (tmp_path / "sweep.toml").write_text(
        f'[base]\ntask = "{task}"\nclients = 2\nbatch_size = 16\nepochs = 2\n'
        '[grid]\ncodec = ["raw", "topk"]\nseed = [0, 1]\n'
    )
    sweep = tmp_path / "sweep"
    run("sweep", tmp_path / "sweep.toml", "--workers", 1, "--out", sweep)
    lines = json.loads(run("compare", sweep, "--json"))
    assert [(line["method"], line["seeds"]) for line in lines] == [
        ("raw", 2),
        ("topk 8x", 2),
    ]
    run("report", sweep, "-o", tmp_path / "report.html")
    assert "my_task" in (tmp_path / "report.html").read_text()


def test_an_audit_needs_images_rows_or_tokens(run, tmp_path):
    train = ("train", "--task", REGRESSION, *SMALL, "--epochs", 1)
    run(*train, "--out", tmp_path / "run")
    before = (tmp_path / "run" / "record.json").read_bytes()
    said = run("audit", tmp_path / "run", code=1)
    assert "are neither images, nor rows, nor tokens" in said
    assert said.count("\n") == 1
    assert (tmp_path / "run" / "record.json").read_bytes() == before
    assert not (tmp_path / "run" / "images").exists()


def test_an_audit_of_rows(run, tmp_path):
    run("train", "--task", CLASSES, *SMALL, "--epochs", 1, "--out", tmp_path / "run")
    said = run(
        "audit", tmp_path / "run", "--attack", "linear", "--attack", "label-kmeans"
    )
    assert "Warning" not in said
    entries = {one["attack"]: one for one in record_of(tmp_path / "run")["audit"]}
    assert entries["linear"]["metrics"].keys() >= {"r2", "row_mse", "reidentification"}
    assert entries["label-kmeans"]["metrics"]


def test_a_task_of_an_installed_module(tmp_path):
    path = os.pathsep.join([str(FOLDER), str(Path(lightsplit.__file__).parents[1])])
    command = ("train", "--task", "my_task:classes", *SMALL, "--epochs", 1)
    done = subprocess.run(
        [sys.executable, "-m", "lightsplit", *map(str, command), "--out", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    assert record_of(tmp_path / "run")["labels"]["task"] == "my_task:classes"
