"""``lightsplit serve`` and ``lightsplit join`` as an owner starts them, over mTLS."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import pytest
from lab.faults import Halts, left_behind
from lab.processes import options, wait_until
from lab.proxy import Frames, Proxy
from lab.runs import NAMES, PATIENCE_SECONDS, assert_same_weights, reference


@pytest.fixture
def interpreter(tmp_path):
    """Return what starts a command as a terminal does: a new interpreter."""
    started = []

    def start(*argv):
        with (tmp_path / "carol.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lightsplit", *map(str, argv)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_server_and_three_clients_over_mutual_tls_are_the_run_in_one_process(
    make_cluster, interpreter, certificates
):
    certs = ["--certs", certificates]
    cluster = make_cluster({}, serve=certs, join=[*certs, "--give-up-seconds", 300])
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in ("alice", "bob"):
        cluster.start_client(name)
    carol = interpreter(*cluster.join_command("carol"))
    assert carol.wait(PATIENCE_SECONDS) == 0, (cluster.folder / "carol.log").read_text()
    assert [cluster.clients[name].wait() for name in ("alice", "bob")] == [0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference())


class FirstAnswer:
    """Notes that the server has answered somebody."""

    def __init__(self):
        self.came = threading.Event()
        self._frames = {}

    def look(self, direction, line, chunk):
        frames = self._frames.setdefault((direction, line), Frames(direction))
        if frames.feed(chunk) and direction == "down":
            self.came.set()


@pytest.fixture
def started(make_cluster):
    """Return what starts a server and clients; the line follows a server that moves."""
    with contextlib.ExitStack() as stack:

        def start(settings, watcher, serve=(), names=NAMES):
            cluster = make_cluster(
                settings, serve=serve, join=("--give-up-seconds", 300)
            )
            proxy = stack.enter_context(Proxy(cluster.start_server(), watcher.look))
            cluster.ports = dict.fromkeys(NAMES, proxy.port)
            cluster.proxy = proxy
            for name in names:
                cluster.start_client(name)
            return cluster

        yield start


def restart_server(cluster):
    cluster.proxy.upstream_port = cluster.start_server()


def assert_ends_like_one_process(cluster, **settings):
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**settings))


def checkpoint_after(cluster, step):
    """Wait until the server has saved a checkpoint at ``step`` or later."""
    folder = cluster.folder / "server" / "checkpoint"
    wait_until(
        lambda: any(
            int(path.name.removeprefix("step-")) >= step
            for path in folder.glob("step-????????")
        ),
        "a checkpoint",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_asked_to_stop_saves_and_can_be_resumed(number, started):
    settings, halts = {"epochs": 20}, Halts(14)
    cluster = started(settings, halts, serve=["--checkpoint-every", 4])
    with halts.next():
        checkpoint_after(cluster, 8)
        cluster.server.signal(number)
    assert cluster.server.wait() == 128 + number
    assert f"--resume {cluster.folder / 'server'}" in cluster.server.text
    assert not (cluster.folder / "server" / "record.json").exists()
    restart_server(cluster)
    assert_ends_like_one_process(cluster, **settings)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_client_that_leaves_by_a_signal_can_come_back(number, started):
    settings, halts = {"epochs": 6, "heads": "private"}, Halts(4, 20, 36)
    cluster = started(settings, halts, serve=["--checkpoint-every", 1])
    for at, name in enumerate(NAMES):
        with halts.next():
            checkpoint_after(cluster, 5 * at + 2)
            cluster.clients[name].signal(number)
            assert cluster.clients[name].wait() == 128 + number
        assert "start the same command again" in cluster.clients[name].text
        cluster.start_client(name)
    assert_ends_like_one_process(cluster, **settings)


@pytest.mark.parametrize("first", ["alice", "carol"])
def test_a_server_killed_before_its_first_checkpoint_starts_over(first, started):
    answer = FirstAnswer()
    cluster = started({}, answer, names=[first])
    assert answer.came.wait(PATIENCE_SECONDS)
    cluster.server.signal(signal.SIGKILL)
    cluster.server.wait()
    assert not (cluster.folder / "server" / "checkpoint").exists()
    restart_server(cluster)
    for name in set(NAMES) - {first}:
        cluster.start_client(name)
    assert_ends_like_one_process(cluster)


def test_a_finished_run_can_be_served_for_predictions(started, zygote):
    cluster = started({}, FirstAnswer())
    assert_ends_like_one_process(cluster)
    restart_server(cluster)
    done = zygote.start(
        cluster.folder / "predict.log",
        *("predict", *options(), "--name", "bob", "--json"),
        *("--address", f"127.0.0.1:{cluster.proxy.port}"),
        *("--key", cluster.folder / "clients.key"),
    )
    assert done.wait() == 0, done.text
    accuracy = reference().history[-1]["test_accuracy"]
    assert f'"accuracy": {accuracy}' in done.text
    cluster.server.signal(signal.SIGTERM)
    assert_ends_like_one_process(cluster)
