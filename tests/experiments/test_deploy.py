"""An experiment over the network, both ends in this process, is the one in one."""

import gc
import threading

import pytest
from safetensors.torch import load_file

from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.errors import ConfigError, RunError, TransportError
from lightsplit.experiments import deploy
from lightsplit.experiments.deploy import join_experiment, serve_experiment
from lightsplit.experiments.prediction import predict_experiment
from lightsplit.results import RunFolder
from lightsplit.runtime import Secret

pytestmark = pytest.mark.slow

ALONE = {"clients": 1, "train_limit": 30, "epochs": 2}  # of one: nobody else is built

COUNTED = """
import weakref
import torch
from torch import nn
from lightsplit.tasks import Task, TASKS

HEADS, BACKBONES = weakref.WeakSet(), weakref.WeakSet()

def model():
    HEADS.add(head := nn.Linear(64, 6))
    BACKBONES.add(backbone := nn.Linear(6, 6))
    return nn.Sequential(nn.Flatten(), head, backbone, nn.ReLU(), nn.Linear(6, 10))

def task():
    return Task(
        model=model,
        example=lambda: (torch.zeros(2, 1, 8, 8), torch.zeros(2).long()),
        data=TASKS.create("digits").data,
        head_until="1",
        tail_from="4",
        classes=10,
    )
"""


class Service:
    """``serve_experiment`` in a thread; it is built before it listens."""

    def __init__(self, experiment, folder, **options):
        self.record = self.error = self.coordinator = None
        self.port = 0
        self.wants_stop = False
        self._has_port = threading.Event()
        self._arguments = (experiment, folder, Endpoint("127.0.0.1:0"))
        self._options = options
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        assert self._has_port.wait(240)
        return self

    def __exit__(self, *_exc):
        self.wants_stop = True
        self._thread.join(240)
        if self.error is not None:
            raise self.error

    def wait(self):
        self._thread.join(240)
        return self.record

    @property
    def endpoint(self):
        return Endpoint(f"127.0.0.1:{self.port}")

    def _run(self):
        try:
            self.record = serve_experiment(
                *self._arguments, watch=self._watch, **self._options
            )
        except Exception as error:  # noqa: BLE001  raised again at the end
            self.error = error
        finally:
            self._has_port.set()

    def _watch(self, coordinator, port):
        self.coordinator, self.port = coordinator, port
        self._has_port.set()
        return not self.wants_stop


@pytest.fixture
def serve(tmp_path):
    def serve(experiment, *, path="server", **options):
        folder = RunFolder(tmp_path / path)
        return Service(experiment, folder, **options)

    return serve


@pytest.fixture
def me(tmp_path):
    """A client with the run's seed for its secret: what it draws is drawn here too."""
    return JoinOptions(
        secret=Secret(0), state_folder=tmp_path / "alice", give_up_seconds=10
    )


def test_objectives_are_shown_to_the_client_and_not_told_to_the_server(
    serve, me, small
):
    experiment = small(**ALONE, wcc=0.01)
    with serve(experiment) as service:
        figures = join_experiment(experiment, service.endpoint, me, name="alice")
        record = service.wait()
    assert figures["objectives"]["wcc"] > 0
    assert "objectives" not in record
    history = service.coordinator.progress.history
    assert history
    assert not any("objectives" in line for line in history)


def test_one_client_over_the_network_is_the_run_in_one_process(
    serve, me, small, finish, tmp_path
):
    experiment, orders = small(**ALONE), []
    with serve(experiment) as service:
        figures = join_experiment(
            experiment,
            service.endpoint,
            me,
            name="alice",
            watch=lambda *seen: orders.append(seen),
        )
        record = service.wait()
    alone = finish(**ALONE)
    assert set(alone.record) - set(record) == {
        "client_cost",
        "label_histogram",
        "backdoor",
        "inspection",
        "hijack",
    }  # what only the clients know
    same = ("steps", "samples", "epochs", "rounds", "parameters", "stopped_by")
    for name in ("test_accuracy", "test_loss", *same):
        assert record[name] == alone.record[name], name
    for kind in ("code", "output", "output_gradient", "code_gradient", "framing"):
        assert record["bytes"][kind] == alone.record["bytes"][kind]
        assert figures["bytes"][kind] == alone.record["bytes"][kind]
    assert (figures["index"], figures["steps"]) == (0, alone.record["steps"])
    assert orders[-1][0].reason == "schedule"
    standing = orders[0][1]()  # as things stand now, whenever it was given
    steps = alone.record["steps"]
    assert standing == (steps, steps, figures["bytes"]["total"])
    whole = load_file(alone.folder.path / "model.safetensors")
    head = load_file(tmp_path / "alice" / "client.safetensors")
    assert all(
        (head[f"head.{name}"] == whole[name]).all()
        for name in whole
        if f"head.{name}" in head
    )
    assert (tmp_path / "server" / "metrics.jsonl").read_text().count("\n") == 2
    assert "clients" in RunFolder(tmp_path / "server").read_record()


def test_each_end_holds_its_own_part_alone(serve, me, small, tmp_path):
    (tmp_path / "counted.py").write_text(COUNTED)
    experiment = small(**ALONE, codec="raw", task=str(tmp_path / "counted.py"))
    built = experiment.make_task().model.__globals__
    held = []

    def watch(_next, _standing):
        gc.collect()
        held.append((len(built["HEADS"]), len(built["BACKBONES"])))

    with serve(experiment) as service:
        join_experiment(experiment, service.endpoint, me, name="alice", watch=watch)
    assert set(held) == {(1, 1)}


@pytest.mark.parametrize(
    "more",
    [
        {"codec": "lightsplit-b", "bits": 4},
        {"codec": "lightsplit-b", "bits": 4, "heads": "private"},
        {"codec": "lightsplit-b", "bits": 4, "release": "once"},
        {"codec": "raw", "gradients": "none"},
        {"codec": "none"},
    ],
    ids=str,
)
def test_both_ends_certify_what_one_process_does(more, serve, me, small, finish):
    settings = {**ALONE, **more}
    with serve(small(**settings)) as service:
        end = join_experiment(small(**settings), service.endpoint, me, name="alice")
        record = service.wait()
    expected = finish(**settings).record["certificate"]
    assert end["certificate"] == expected
    counted = ("samples", "distinct_codes", "reidentification_bound")
    for name in counted if settings["codec"] != "none" else ():
        assert record["certificate"][name] == expected[name]
    told_by_labels = {"distinct_codes_with_labels", "conditional_entropy"}
    assert not told_by_labels & set(record["certificate"])


def test_parallel_rounds_count_the_codes_of_an_evaluation(serve, me, small, finish):
    settings = {**ALONE, "rounds": "parallel", "codec": "lightsplit-b", "bits": 4}
    with serve(small(**settings)) as service:
        join_experiment(small(**settings), service.endpoint, me, name="alice")
        found = service.wait()["certificate"]
    expected = finish(**settings).record["certificate"]
    assert found["distinct_codes"] == expected["distinct_codes"] > 1


@pytest.mark.parametrize("has_sides", [True, False])
def test_joining_a_finished_run_again_keeps_the_trained_side(
    has_sides, serve, me, small, tmp_path
):
    experiment = small(**ALONE)
    with serve(experiment) as service:
        join_experiment(experiment, service.endpoint, me, name="alice")
    file = tmp_path / "alice" / "client.safetensors"
    before = file.read_bytes()
    for kept in (tmp_path / "alice").glob("side-*") if not has_sides else ():
        kept.unlink()
    with serve(experiment) as service:
        figures = join_experiment(experiment, service.endpoint, me, name="alice")
    assert figures["stopped_by"] == "schedule"
    assert file.read_bytes() == before


def test_a_server_that_is_stopped_leaves_no_record(serve, small, tmp_path):
    with serve(small(**ALONE)) as service:
        service.wants_stop = True
        assert service.wait() is None
    assert not (tmp_path / "server" / "record.json").exists()
    assert (tmp_path / "server" / "experiment.toml").exists()


def test_predictions_come_with_their_labels(serve, me, small, finish, tmp_path):
    experiment = small(**ALONE)
    with serve(experiment) as service:
        join_experiment(experiment, service.endpoint, me, name="alice")
        service.wait()
    with serve(experiment) as again:
        found = predict_experiment(
            experiment, again.endpoint, name="alice", folder=tmp_path / "alice"
        )
        again.wants_stop = True
        again.wait()
    assert again.record == service.record  # it was over: no byte of it is lost
    assert RunFolder(tmp_path / "server").read_record() == service.record
    accuracy = finish(**ALONE).record["test_accuracy"]
    pairs = zip(found.predictions, found.labels, strict=True)
    right = [prediction == label for prediction, label in pairs]
    assert sum(right) / len(right) == pytest.approx(accuracy)
    assert found.figures["accuracy"] == accuracy


def test_a_sample_left_alone_is_refused_before_anyone_is_called(me, small, monkeypatch):
    monkeypatch.setattr(deploy.pieces, "check_single_samples", _refuse)
    with pytest.raises(ConfigError, match="one sample"):
        join_experiment(small(**ALONE), Endpoint("127.0.0.1:9"), me, name="alice")


def _refuse(batches, _modules):
    assert len(batches) == 1
    raise ConfigError("one sample is left alone")


def test_a_server_that_is_not_there_is_a_clear_error(small, tmp_path):
    nobody = Endpoint("127.0.0.1:9")
    me = JoinOptions(state_folder=tmp_path, give_up_seconds=0)
    with pytest.raises(TransportError, match=r"127\.0\.0\.1:9"):
        join_experiment(small(**ALONE), nobody, me, name="alice")
    with pytest.raises(TransportError, match=r"127\.0\.0\.1:9"):
        predict_experiment(small(**ALONE), nobody, name="alice")


def test_plain_text_beyond_this_machine_is_refused(me, small, serve):
    with pytest.raises(ConfigError, match="needs certificates"):
        join_experiment(small(**ALONE), Endpoint("10.0.0.1:7443"), me, name="alice")


def test_a_side_that_is_not_there_is_a_clear_error(small, tmp_path):
    with pytest.raises(RunError, match=r"client\.safetensors does not exist"):
        predict_experiment(
            small(**ALONE), Endpoint("127.0.0.1:9"), name="alice", folder=tmp_path
        )
