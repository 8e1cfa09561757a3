"""TensorBoard and MLflow get what metrics.jsonl has, from every command."""

import sys

import pytest

from lightsplit import scalars
from lightsplit.results import RunFolder


def events(folder):
    """Return the values by tag and step that TensorBoard would show."""
    loading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader"
    )
    values = {}
    for file in sorted((folder / "tensorboard").iterdir()):
        for event in loading.LegacyEventFileLoader(str(file)).Load():
            for value in event.summary.value:
                values[value.tag, event.step] = value.simple_value
    return values


def expected(folder):
    """Return the same from metrics.jsonl."""
    return {
        (name, line["step"]): pytest.approx(value, rel=1e-5)
        for line in RunFolder(folder).read_metrics()
        for name, value in scalars(line).items()
    }


@pytest.mark.slow
def test_tensorboard_gets_every_evaluation(lightsplit, quick, tmp_path):
    out = tmp_path / "run"
    lightsplit("train", *quick, "--out", out, "--json", "--tensorboard")
    assert events(out) == expected(out)
    record = RunFolder(out).read_record()
    assert events(out)["bytes/total", record["steps"]] == record["bytes"]["total"]


@pytest.mark.slow
def test_a_resumed_run_tells_everything_again(lightsplit, quick, tmp_path):
    out = tmp_path / "run"
    lightsplit("train", *quick, "--out", out)
    lightsplit("train", "--resume", out, "--epochs", 3, "--tensorboard")
    assert len(RunFolder(out).read_metrics()) == 3
    assert events(out) == expected(out)


@pytest.fixture
def mlflow(monkeypatch):
    """Return MLflow's client of a store, without its reports to its makers."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    found = pytest.importorskip("mlflow")
    return lambda store: found.MlflowClient(tracking_uri=store)


@pytest.mark.slow
def test_mlflow_gets_settings_and_every_evaluation(lightsplit, quick, tmp_path, mlflow):
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    folder = tmp_path / "a-run"
    lightsplit("train", *quick, "--seed", 1, "--out", folder, "--mlflow", store)
    client = mlflow(store)
    experiment = client.get_experiment_by_name("lightsplit").experiment_id
    (found,) = client.search_runs([experiment])
    assert found.info.run_name == "a-run"
    assert found.info.status == "FINISHED"
    assert found.data.params["seed"] == "1"
    assert found.data.params["codec"] == "lightsplit-f"
    assert found.data.tags["command"] == "train"
    values = {
        (name, one.step): one.value
        for name in found.data.metrics
        for one in client.get_metric_history(found.info.run_id, name)
    }
    assert values == expected(folder)


@pytest.mark.parametrize("command", ["train", "serve", "join"])
@pytest.mark.parametrize(
    ("extra", "option"),
    [
        ("tensorboard", ["--tensorboard"]),
        ("mlflow", ["--mlflow", "sqlite:///mlflow.db"]),
    ],
)
def test_a_missing_extra_is_one_sentence_and_leaves_nothing(
    refused, tmp_path, monkeypatch, command, extra, option
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, extra, None)
    message = refused(command, *option)
    assert message.endswith(f"; pip install 'lightsplit[{extra}]'")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_no_address_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused("train", "--mlflow", "mlflow.db")
    assert "such as sqlite:///mlflow.db or http://host:5000, got 'mlflow.db'" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_store_that_cannot_be_opened_ends_the_run_at_its_start(
    refused, tmp_path, monkeypatch, mlflow
):
    monkeypatch.chdir(tmp_path)
    message = refused("train", "--mlflow", "unknown://store", "--json")
    assert "MLflowLog cannot start: " in message
    assert message.count("\n") == 0
    assert not list(tmp_path.glob("runs/*/record.json"))
