import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from lightsplit.experiments import from_settings, run
    from lightsplit.results import RunFolder

    folder = RunFolder.create(tmp_path_factory.mktemp("audit") / "run")
    settings = {"train_limit": 120, "test_limit": 20, "epochs": 1, "clients": 2}
    run(from_settings(settings), folder)
    return folder.path


def test_an_audit_shows_reconstructions_and_labels(lightsplit, finished):
    result = lightsplit(
        "audit",
        finished,
        "--attack",
        "linear",
        "--attack",
        "label-hint",
        "--images",
        8,
        "--auxiliary",
        50,
    )
    for word in ("class-mean", "linear", "SSIM", "output_gradient", "audit.png"):
        assert word in result.stdout
    assert (finished / "images" / "audit.png").is_file()


def test_json_has_the_entries_and_nothing_else(lightsplit, finished):
    result = lightsplit("audit", finished, "--attack", "label-norm", "--json")
    entries = json.loads(result.stdout)
    assert {entry["attack"] for entry in entries} >= {"label-norm", "all-black"}


def first_column(shown):
    """Return the first column of a table, its broken lines joined."""
    rows = [line.split("│") for line in shown.splitlines() if "│" in line]
    return "".join(row[1].strip() for row in rows)


def test_options_of_an_attack_are_shown_and_recorded(lightsplit, finished):
    named = ("--attack", "decoder:blocks=0,steps=5", "--attack", "linear:ridge=0.5")
    few = ("--images", 8, "--auxiliary", 50)
    shown = lightsplit("audit", finished, *named, *few).stdout
    assert "decoder:blocks=0,steps=5" in first_column(shown)
    record = json.loads((finished / "record.json").read_text())
    given = {entry["attack"]: entry["options"] for entry in record["audit"]}
    assert given["decoder"] == {"blocks": 0, "steps": 5}
    assert {"ridge": 0.5} in [entry["options"] for entry in record["audit"]]


def test_during_training_labels_are_shown_with_their_step(lightsplit, finished):
    result = lightsplit("audit", finished, "--attack", "label-norm", "--during")
    assert "code at 2" in result.stdout


def test_attacks_that_do_not_watch_training_run_after_it(lightsplit, finished):
    named = ("--attack", "label-norm", "--attack", "linear")
    result = lightsplit("audit", finished, *named, "--during", "--images", 8)
    assert "code at 2" in result.stdout
    assert "linear" in result.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--attack", "decodr"), "did you mean 'decoder'?"),
        (
            ("--attack", "decoder:blokcs=4"),
            "attack 'decoder' has no option 'blokcs'; known: blocks, lr, most_pairs, "
            "most_steps, steps, thorough, width; did you mean 'blocks'?",
        ),
        (
            ("--attack", "sdar:wcc=much", "--during"),
            "the option 'wcc' of attack 'sdar' must be a number, got 'much'",
        ),
        (("--attack", "decoder:steps=0"), "'steps' of decoder must be at least 1"),
        (("--form", "new"), "unknown form 'new'; known: published, adaptive, both"),
        (("--budget", "big"), "unknown budget 'big'; known: quick, short, full"),
        (("--client", 9), "client must be between 0 and 1, got 9"),
        (("--attack", "linear", "--during"), "learns or infers labels"),
        (("--device", "nowhere"), "cannot use device 'nowhere'"),
    ],
)
def test_invalid_options_are_refused_with_the_reason(
    refused, finished, options, reason
):
    assert reason in refused("audit", finished, *options)


def test_a_folder_that_is_not_a_run_is_refused(refused, tmp_path):
    assert "is not a run" in refused("audit", tmp_path)


def test_attacks_of_the_experiment_file_are_made_where_none_is_named(
    lightsplit, tmp_path
):
    from lightsplit.experiments import from_settings, run
    from lightsplit.results import RunFolder

    folder = RunFolder.create(tmp_path / "run")
    settings = {"train_limit": 60, "test_limit": 20, "epochs": 1, "clients": 2}
    planned = {"attack.label-kmeans.restarts": 2}
    run(from_settings({**settings, **planned}), folder)
    entries = json.loads(lightsplit("audit", folder.path, "--json").stdout)
    made = [entry for entry in entries if entry["kind"] != "trivial"]
    assert {entry["attack"] for entry in made} == {"label-kmeans"}
    assert all(entry["options"] == {"restarts": 2} for entry in made)


IMAGE_TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset
from lightsplit import Task


def data(_folder):
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(60, 1, 8, 8, generator=draw)
    labels = torch.arange(60) % 2
    return (
        TensorDataset(images[:40], labels[:40]),
        TensorDataset(images[40:], labels[40:]),
    )


def task():
    return Task(
        model=lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(144, 8),
            nn.Linear(8, 2),
        ),
        example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long()),
        head_until="1",
        tail_from="4",
        data=data,
        classes=2,
    )
"""


def test_a_run_of_an_own_task_is_audited_where_its_file_has_moved(
    lightsplit, refused, tmp_path
):
    file = tmp_path / "mine.py"
    file.write_text(IMAGE_TASK)
    run = tmp_path / "run"
    quick = ["--clients", 2, "--epochs", 1, "--batch-size", 8]
    lightsplit("train", "--task", file, *quick, "--out", run)
    moved = file.rename(tmp_path / "moved.py")
    audit = ["audit", run, "--attack", "linear", "--images", 4, "--json"]
    assert "there is no task file" in refused(*audit)
    entries = json.loads(lightsplit(*audit, "--task", moved).stdout)
    assert "linear" in {entry["attack"] for entry in entries}


def test_a_figure_is_never_cut_short_where_the_terminal_is_narrow():
    from io import StringIO

    from rich.console import Console

    from lightsplit.cli.audit import tables

    figures = {"mean": 0.376, "low": 0.368, "high": 0.384}
    names = ("ssim", "lpips", "mse", "correlation", "reidentification")
    entry = {
        "attack": "labelled-decoder",
        "options": {"blocks": 4},
        "form": "",
        "kind": "oracle",
        "images": 2000,
        "metrics": dict.fromkeys(names, figures),
        "beats_trivial": True,
        "seconds": 30.0,
    }
    shown = StringIO()
    for table in tables([entry]):
        Console(file=shown, width=80).print(table)
    assert shown.getvalue().count("0.376") == shown.getvalue().count("±0.008") == 5
    assert "…" not in shown.getvalue()
