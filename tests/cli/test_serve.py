"""``lightsplit serve`` in this process; its one client comes when it listens."""

import json
import signal
import socket
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.live import Live

from lightsplit.backdoors import Verdict
from lightsplit.cli import serve as serve_module
from lightsplit.cli.serve import Display
from lightsplit.deployment.endpoint import Endpoint
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.experiments import from_settings
from lightsplit.experiments.deploy import join_experiment
from lightsplit.results import RunFolder
from lightsplit.runs import Progress, checkpoint_folder
from lightsplit.transports import ByteMeter

pytestmark = pytest.mark.slow

ALONE = {"clients": 1, "train_limit": 30, "test_limit": 20, "batch_size": 10}
FLAGS = [part for k, v in ALONE.items() for part in (f"--{k.replace('_', '-')}", v)]
FLAGS += ["--epochs", 1, "--address", "127.0.0.1:0"]


@pytest.fixture
def on_listening(monkeypatch):
    """Return what calls a function with the port once the server is there."""

    def on_listening(function):
        original, called = Display.watch, set()

        def watch(self, coordinator, port):
            if id(self) not in called:
                called.add(id(self))
                function(port)
            return original(self, coordinator, port)

        monkeypatch.setattr(Display, "watch", watch)

    return on_listening


@pytest.fixture
def client(on_listening, tmp_path):
    """A client that joins by itself."""
    threads = []

    def join(port):
        work = threading.Thread(
            target=join_experiment,
            args=(
                from_settings({**ALONE, "epochs": 1}),
                Endpoint(f"127.0.0.1:{port}"),
                JoinOptions(state_folder=tmp_path / "alice", give_up_seconds=200),
            ),
            kwargs={"name": "alice"},
        )
        threads.append(work)
        work.start()

    on_listening(join)
    yield
    for thread in threads:
        thread.join(240)


@pytest.mark.usefixtures("client")
def test_json_is_the_record_and_nothing_else(lightsplit, tmp_path):
    result = lightsplit("serve", *FLAGS, "--out", tmp_path / "run", "--json")
    record = json.loads(result.stdout)
    assert record == json.loads((tmp_path / "run" / "record.json").read_text())
    assert (record["steps"], record["stopped_by"]) == (3, "schedule")
    assert result.stderr.startswith("listening on port ")


@pytest.mark.usefixtures("client")
def test_people_get_the_folder(lightsplit, tmp_path):
    result = lightsplit(
        *("serve", *FLAGS, "--client", "alice", "--out", tmp_path / "run")
    )
    assert result.stdout == f"run folder: {tmp_path / 'run'}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_prints_how_to_resume(
    number, lightsplit, on_listening, tmp_path
):
    on_listening(lambda _port: signal.raise_signal(number))
    before = signal.getsignal(number)
    result = lightsplit("serve", *FLAGS, "--out", tmp_path / "run", code=128 + number)
    assert "nothing is saved" in result.stderr  # nobody had come
    assert f"again with --resume {tmp_path / 'run'}\n" in result.stderr
    assert signal.getsignal(number) is before


def test_only_a_run_that_has_begun_is_called_saved(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    assert "nothing is saved" in serve_module._stopped(folder, is_cut_short=False)
    checkpoint_folder.write(folder.checkpoint, 0, {}, {})
    said = f"stopped and saved; resume with --resume {folder.path}"
    assert serve_module._stopped(folder, is_cut_short=False) == said


def test_a_second_signal_does_not_wait():
    display = Display(None)
    display.stop(signal.SIGTERM, None)
    assert display.exit_code == 143
    with pytest.raises(KeyboardInterrupt):
        display.stop(signal.SIGTERM, None)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--address", "10.1.2.3:7443"], "needs certificates"),
        (["--client", "alice", "--client", "bob"], "expected 1 different names"),
        (["--client", "a b"], "a client's name has 1 to 64"),
        (["--certs", "/nowhere"], "cannot read /nowhere/"),
        (["--address", "127.0.0.1:99999"], "a port up to 65535, got '127.0.0.1:99999'"),
        (["--address", "localhost"], "expected host:port"),
        (["--resume", "/nowhere"], "--resume takes the run's own settings"),
        (["--address", "no.invalid:1", "--insecure"], "cannot listen on no.invalid:1"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(flags, text, refused, tmp_path):
    assert text in refused("serve", *FLAGS, "--out", tmp_path / "run", *flags)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_there_stays(refused, tmp_path):
    (tmp_path / "run").mkdir()
    refused("serve", *FLAGS, "--out", tmp_path / "run", "--address", "localhost")
    assert (tmp_path / "run").is_dir()


def test_a_run_that_cannot_listen_leaves_its_folder_free(
    lightsplit, refused, on_listening, tmp_path
):
    out = ["--out", tmp_path / "run"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = refused("serve", *FLAGS, *out, "--address", address)
    assert line == (
        f"error: cannot listen on {address}: Address already in use; "
        "stop the program that listens there, or use another port"
    )
    on_listening(lambda _port: signal.raise_signal(signal.SIGTERM))
    lightsplit("serve", *FLAGS, *out, code=143)
    assert (tmp_path / "run" / "experiment.toml").exists()


def test_a_run_resumes_with_its_own_settings(
    lightsplit, refused, on_listening, tmp_path
):
    on_listening(lambda _port: signal.raise_signal(signal.SIGTERM))
    lightsplit("serve", *FLAGS, "--out", tmp_path / "run", code=143)
    assert "not an empty folder" in refused("serve", *FLAGS, "--out", tmp_path / "run")
    again = ["--resume", tmp_path / "run", "--address", "127.0.0.1:0"]
    lightsplit("serve", *again, code=143)


def member(name, index, **more):
    meter = ByteMeter()
    meter.restore({"code": 1024, "labels": 512, "output": 2048, "hand_off": 4096})
    known = {"peer": None, "loss": None, "meter": meter}
    return SimpleNamespace(name=name, index=index, **{**known, **more})


@pytest.fixture
def coordinator():
    return SimpleNamespace(
        progress=Progress(turns=7, steps=14, client_steps=[6, 4, 4]),
        guard=None,
        finished=None,
        is_cut_short=False,
        members=[
            member("alice", 0),
            member("bob", 1, peer=object(), loss=0.25),
            member("carol", 2, peer=object()),
        ],
        at_work=lambda: {1},
        round_number=None,
        computing=SimpleNamespace(seconds=1.0, share=0.25),
    )


def table_text(coordinator):
    console = Console(width=100, record=True, file=None, quiet=True)
    with console.capture() as shown:
        console.quiet = False
        console.print(serve_module._table(coordinator, 2.0))
    return shown.get()


def test_the_table_shows_every_client_and_its_state(coordinator):
    text = table_text(coordinator)
    assert "score" not in text
    assert "turn 7, step 14, 2.0 steps/s" in text
    sizes = ("1.5 KiB", "2.0 KiB", "4.0 KiB")  # up, down, other
    for words in (("alice", "away", "6", *sizes), ("bob", "in turn", "0.250")):
        assert any(all(w in line for w in words) for line in text.splitlines())
    assert "waits" in text


def test_a_watched_run_shows_scores_flags_and_undone_turns(coordinator, capsys):
    coordinator.guard = SimpleNamespace(on_flag="skip")
    coordinator.progress.note_verdict(4, Verdict((0, 2), (0.5, 9.25), 3.0))
    coordinator.progress.note_undone(2)
    lines = table_text(coordinator).splitlines()
    expected = {"alice": "0.5", "bob": "–", "carol": "9.2 flagged, 1 undone"}
    for name, text in expected.items():
        assert any(name in line and text in line for line in lines), name
    display = Display(None)
    for _ in range(2):
        display.watch(coordinator, 1)
    said = capsys.readouterr().err
    told = "round 4: flagged carol (9.2), threshold 3; their turns are undone"
    assert said.count(told) == 1


def test_evaluations_are_printed_once_and_not_those_of_an_earlier_server(
    coordinator, capsys
):
    line = {"epoch": 1, "step": 7, "test_accuracy": 0.5, "test_loss": 1.25}
    coordinator.progress.history.append(line)
    display = Display(None)
    display.watch(coordinator, 1)
    coordinator.progress.history.append({**line, "epoch": 2, "step": 14})
    for _ in range(2):
        display.watch(coordinator, 1)
    said = capsys.readouterr().err
    assert said.count("epoch 2, step 14: accuracy 50.00%, loss 1.25\n") == 1
    assert "epoch 1" not in said


def test_a_log_names_clients_that_join_and_leave(coordinator, capsys):
    display = Display(None)
    display.watch(coordinator, 1)
    coordinator.members[0].peer = coordinator.members[1].peer
    coordinator.members[2].peer = None
    for _ in range(2):
        display.watch(coordinator, 1)
    said = capsys.readouterr().err.splitlines()
    came = ["bob has come", "carol has come", "alice has come", "carol is away"]
    assert said == ["listening on port 1", *came]


def test_a_terminal_sees_the_table_live(coordinator):
    console = Console(width=100, force_terminal=True, quiet=True)
    display = Display(Live(console=console, auto_refresh=False))
    assert display.watch(coordinator, 1)
    display.exit_code = 130
    assert not display.watch(coordinator, 1)
