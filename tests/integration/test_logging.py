"""A server and its clients log alike, while the run goes on."""

import pytest
from lab.processes import wait_until
from lab.runs import NAMES

from lightsplit import Callback, scalars
from lightsplit.experiments import from_settings, run
from lightsplit.results import RunFolder


def test_server_and_clients_log_where_people_look(make_cluster, tmp_path):
    pytest.importorskip("mlflow")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    cluster = make_cluster(
        {"objective": "wcc:0.01", "heads": "private"},
        serve=("--mlflow", store, "--tensorboard"),
        join=("--tensorboard", "--no-report"),
    )
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    for name in NAMES:
        lines = RunFolder(tmp_path / name).read_metrics()
        trained = [line for line in lines if "train_loss" in line]
        assert [line["step"] for line in trained] == [1, 2, 3, 4]
        assert all(line["objectives"].keys() == {"wcc"} for line in trained)
        assert sum("test_accuracy" in line for line in lines) == 2
        assert list((tmp_path / name / "tensorboard").iterdir())
    assert list((tmp_path / "server" / "tensorboard").iterdir())
    assert (tmp_path / "mlflow.db").is_file()


def test_a_clients_lines_are_there_while_the_run_goes_on(make_cluster, tmp_path):
    cluster = make_cluster({"heads": "private", "epochs": 200})
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    folder = RunFolder(tmp_path / "bob")
    wait_until(
        lambda: folder.metrics_file.is_file() and len(folder.read_metrics()) > 2,
        "three lines",
    )
    assert cluster.clients["bob"].code is None


def test_a_callback_of_ones_own_follows_a_run(tmp_path):
    told = []

    class Mine(Callback):
        def start(self, run):
            told.append((run.command, run.name, run.settings["clients"]))

        def log(self, line):
            told.append(scalars(line)["test/accuracy"])

        def end(self, *, is_finished):
            told.append(is_finished)

    settings = {"clients": 2, "train_limit": 40, "test_limit": 20, "epochs": 2}
    folder = RunFolder.create(tmp_path / "mine")
    record = run(from_settings(settings), folder, callbacks=[Mine()])
    assert told[0] == ("train", "mine", 2)
    assert told[2] == record["test_accuracy"]
    assert told[3:] == [True]
