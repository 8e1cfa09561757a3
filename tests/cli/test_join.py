"""``lightsplit join`` and ``predict`` in this process; the server is a thread."""

import io
import json
import signal
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console

from lightsplit.cli import console
from lightsplit.cli.join import Bar, _leaving
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.errors import TransportError
from lightsplit.experiments import from_settings
from lightsplit.experiments.deploy import Standing, serve_experiment
from lightsplit.protocol.control import Finished, Grant
from lightsplit.results import RunFolder
from lightsplit.runtime import Secret

pytestmark = pytest.mark.slow

ALONE = {"clients": 1, "train_limit": 30, "test_limit": 20, "batch_size": 10}
FLAGS = [part for k, v in ALONE.items() for part in (f"--{k.replace('_', '-')}", v)]
FLAGS += ["--epochs", 1, "--name", "alice"]


@pytest.fixture
def server(tmp_path):
    """Return what starts a server of the same run, or goes on with it."""
    states = []

    def start():
        state = SimpleNamespace(port=0, ends=False, record=None)
        listens = threading.Event()

        def watch(_coordinator, port):
            state.port = port
            listens.set()
            return not state.ends

        def run():
            state.record = serve_experiment(
                from_settings({**ALONE, "epochs": 1}),
                RunFolder(tmp_path / "server"),
                Endpoint("127.0.0.1:0"),
                watch=watch,
            )

        state.thread = threading.Thread(target=run)
        state.thread.start()
        states.append(state)
        assert listens.wait(240)
        state.address = f"127.0.0.1:{state.port}"
        return state

    yield start
    for state in states:
        state.ends = True
        state.thread.join(240)


def test_a_client_takes_part_to_the_end(lightsplit, server, tmp_path):
    started = server()
    result = lightsplit(
        *("join", *FLAGS, "--address", started.address),
        *("--state", tmp_path / "alice", "--json"),
    )
    figures = json.loads(result.stdout)
    assert (figures["index"], figures["steps"]) == (0, 3)
    assert figures["stopped_by"] == "schedule"
    assert (tmp_path / "alice" / "client.safetensors").exists()
    started.thread.join(240)
    assert started.record["steps"] == 3


def test_people_get_steps_bytes_and_the_folder(
    lightsplit, server, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = lightsplit("join", *FLAGS, "--address", server().address, "--no-report")
    assert result.stdout.startswith("done: 3 steps, ")
    assert "\nthis client's part: runs/client-alice\n" in result.stdout
    assert "\ncertificate: at most 4,096 bits x 1 release about" in result.stdout


def test_a_trained_run_classifies_the_test_set(lightsplit, server, tmp_path):
    first = server()
    state = ["--state", tmp_path / "alice"]
    lightsplit("join", *FLAGS, "--address", first.address, *state)
    first.thread.join(240)
    ask = ["predict", *FLAGS, "--address", server().address, *state]
    out = tmp_path / "predictions.csv"
    figures = json.loads(lightsplit(*ask, "--json", "--out", out).stdout)
    assert figures["accuracy"] == first.record["test_accuracy"]
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert rows[0] == ["sample", "prediction", "label"]
    assert len(rows) == 1 + figures["samples"]
    right = sum(prediction == label for _, prediction, label in rows[1:])
    assert right / figures["samples"] == pytest.approx(figures["accuracy"])
    text = f"20 samples: loss {figures['loss']:.4g}, accuracy {figures['accuracy']:.2%}"
    assert lightsplit(*ask).stdout == f"{text}\n"


NOBODY = ["--address", "127.0.0.1:9"]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (NOBODY, "127.0.0.1:9: Failed to connect to remote host: Connection refused"),
        (["--address", "10.1.2.3:7443"], "needs certificates"),
        ([*NOBODY, "--clients", 2], "a key is needed"),
        ([*NOBODY, "--key", "/nowhere"], "cannot read /nowhere"),
        ([*NOBODY, "--secret", "/nowhere"], "cannot read /nowhere"),
        ([*NOBODY, "--certs", "/nowhere"], "cannot read /nowhere/"),
        ([*NOBODY, "--name", "../x", "--certs", "x"], "a client's name has"),
    ],
)
def test_a_mistake_is_one_line(flags, text, refused, tmp_path):
    command = ["join", *FLAGS, "--state", tmp_path, "--give-up-seconds", 0]
    assert text in refused(*command, *flags)


@pytest.mark.parametrize("command", ["join", "predict"])
@pytest.mark.parametrize(
    ("content", "mode", "text"),
    [
        ("", 0o600, "is not a client's secret"),
        ("lightsplit-key-1:AAAA\n", 0o600, "is not a client's secret"),
        ("lightsplit-secret-1:1\n", 0o644, "chmod 600"),
    ],
)
def test_a_bad_secret_is_refused_before_anything_is_written(
    command, content, mode, text, refused, tmp_path
):
    file, state = tmp_path / "my.secret", tmp_path / "alice"
    file.write_text(content)
    file.chmod(mode)
    assert text in refused(command, *FLAGS, *NOBODY, "--secret", file, "--state", state)
    assert file.read_text() == content
    assert list(tmp_path.iterdir()) == [file]


def test_a_client_that_is_not_let_in_leaves_no_secret(refused, server, tmp_path):
    state = tmp_path / "alice"
    address = server().address
    refused(*("join", *FLAGS, "--address", address, "--seed", 1, "--state", state))
    assert not state.exists()


def test_a_client_keeps_its_secret_between_its_starts(lightsplit, server, tmp_path):
    started, state = server(), tmp_path / "alice"
    join = ["join", *FLAGS, "--state", state, "--json"]
    lightsplit(*join, "--address", started.address)
    started.thread.join(240)
    kept = Secret.load(state / "secret")
    assert not kept.is_seed
    lightsplit(*join, "--address", server().address)  # the run is over: it may go
    assert Secret.load(state / "secret") == kept


def test_another_contract_is_refused_with_both_values(refused, server, tmp_path):
    line = refused(
        *("join", *FLAGS, "--address", server().address),
        *("--batch-size", 5, "--state", tmp_path),
    )
    assert "batch_size: client has 5, server has 10" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_its_own_exit_code(number, capsys):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as end, _leaving():
        signal.raise_signal(number)
    assert end.value.code == 128 + number
    assert "start the same command again" in capsys.readouterr().err
    assert signal.getsignal(number) is before


@pytest.fixture
def terminal(monkeypatch):
    """Return what gives all that a terminal has shown."""
    screen = Console(width=100, force_terminal=True, file=io.StringIO())
    monkeypatch.setattr(console, "err", screen)
    return screen.file.getvalue


def test_the_bar_is_drawn_as_things_stand(terminal):
    now = Standing(0, 12, 0)
    with Bar(is_hidden=False) as bar:
        bar.refresh()
        assert "waiting for the server" in terminal()
        bar.show(Grant(4, 2, 8), lambda: now)
        now = Standing(8, 12, 2048)  # no word of it: it is looked up
        bar.refresh()
        last = terminal().splitlines()[-1]
        assert all(text in last for text in ("turn 4", " 8/12", "2.0 KiB"))
        now = Standing(12, 12, 4096)
        bar.show(Finished(), lambda: now)
    last = terminal().rpartition("finished")[2]
    assert all(text in last for text in ("12/12", "4.0 KiB"))


def test_each_absence_of_the_server_is_reported_once(terminal):
    refused, stops = TransportError("host:1: refused [x]"), TransportError("it stops")
    with Bar(is_hidden=True) as bar:
        for error in (refused, refused, stops):
            bar.tell_away(error)
        bar.show(Grant(4, 2, 8), lambda: Standing(0, 1, 0))
        bar.tell_away(stops)
    assert terminal().splitlines() == [
        "host:1: refused [x]; trying again",
        "it stops; trying again",
        "it stops; trying again",
    ]
