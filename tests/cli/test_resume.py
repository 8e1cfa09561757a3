import json
import shutil

import pytest
from typer.testing import CliRunner

from lightsplit.cli.app import app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def template(quick, tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "run"
    options = [*quick, "--out", str(path), "--json"]
    assert CliRunner().invoke(app, ["train", *options]).exit_code == 0
    return path


@pytest.fixture
def run(template, tmp_path):
    """Return the folder of a finished run."""
    return shutil.copytree(template, tmp_path / "run")


def test_a_finished_run_is_finished(lightsplit, run):
    before = json.loads((run / "record.json").read_text())
    result = lightsplit("train", "--resume", run, "--json")
    assert json.loads(result.stdout) == before


def test_more_epochs_give_the_same_as_a_longer_run(lightsplit, quick, run, tmp_path):
    lightsplit("train", *quick, "--epochs", 3, "--out", tmp_path / "long")
    lightsplit("train", "--resume", run, "--epochs", 3)
    for name in ("experiment.toml", "model.safetensors"):
        assert (run / name).read_bytes() == (tmp_path / "long" / name).read_bytes()


def test_fewer_epochs_than_were_run_are_refused(refused, run):
    assert "beyond" in refused("train", "--resume", run, "--epochs", 1)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--lr", 1], "lr"),
        (["--codec", "raw", "--seed", 3], "codec, seed"),
        (["--out", "elsewhere"], "--out"),
        (["my.toml"], "file"),
    ],
)
def test_settings_that_may_not_change_are_refused(refused, run, options, named):
    message = refused("train", "--resume", run, *options)
    assert "only epochs, patience may change" in message
    assert named in message


@pytest.mark.parametrize("place", ["nowhere", ".", "run/record.json"])
def test_a_place_that_is_no_run_is_refused(refused, run, place):
    assert "is not a run" in refused("train", "--resume", run.parent / place)


def newest(run, pattern):
    return max(run.glob(pattern))


def test_a_run_without_a_checkpoint_starts_again(lightsplit, run):
    model = (run / "model.safetensors").read_bytes()
    shutil.rmtree(run / "checkpoint")
    lightsplit("train", "--resume", run)
    assert (run / "model.safetensors").read_bytes() == model


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("checkpoint/latest", b"garbage"),
        ("checkpoint/latest", b""),
        ("checkpoint/latest", b"\xff\xfe"),
        ("checkpoint/step-*/progress.json", b"{"),
        ("checkpoint/step-*/progress.json", b"[]"),
        ("checkpoint/step-*/progress.json", b"{}"),
        ("checkpoint/step-*/progress.json", b'{"contract": 3}'),
        ("checkpoint/step-*/progress.json", b"\xff\xfe"),
        ("checkpoint/step-*/server.safetensors", b"short"),
        ("checkpoint/step-*/client-0.safetensors", b""),
        ("experiment.toml", b"= ="),
        ("experiment.toml", b"seed = 4"),
    ],
)
def test_a_damaged_run_is_refused_by_name(refused, run, file, content):
    newest(run, file).write_bytes(content)
    assert str(run) in refused("train", "--resume", run)


def test_tensors_of_another_model_are_refused(refused, run):
    target = newest(run, "checkpoint/step-*/server.safetensors")
    shutil.copy(run / "model.safetensors", target)
    assert "does not fit" in refused("train", "--resume", run)


@pytest.mark.parametrize(
    "change",
    [
        lambda progress: progress | {"turnips": 1},
        lambda progress: progress | {"client_steps": [1]},
        lambda progress: progress | {"steps": "many"},
    ],
    ids=["unknown counter", "too few clients", "no number"],
)
def test_counters_that_cannot_be_are_refused(refused, run, change):
    file = newest(run, "checkpoint/step-*/progress.json")
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"progress": change(content["progress"])}))
    refused("train", "--resume", run)
