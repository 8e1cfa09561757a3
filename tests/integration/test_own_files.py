"""Owners with folders of their own: nothing else is opened, no result changes."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from lab.ports import free_port
from lab.processes import wait_until
from lab.proxy import Proxy
from PIL import Image
from safetensors.torch import load_file
from torch.utils.data import default_collate
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

import lightsplit
from lightsplit.data import DATASETS, ImageForm
from lightsplit.errors import ConfigError, TransportError
from lightsplit.experiments.prediction import Predictor
from lightsplit.transports.sealing import SealingKey

TASK = str(Path(__file__).parent / "own_files" / "digits_task.py")
SMALL = ("--batch-size", 16, "--epochs", 1)


def write_folder(folder, part, samples):
    """Write images as PNG files by class, as a list and as an archive."""
    with (folder / f"{part}.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "label"])
        for number, (image, label) in enumerate(
            zip(samples.images, samples.labels, strict=True)
        ):
            name = Path(part) / str(int(label)) / f"{number:05}.png"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0].numpy()).save(folder / name)
            table.writerow([name, int(label)])
    arrays = {"inputs": samples.images.numpy(), "labels": samples.labels.numpy()}
    np.savez(folder / f"{part}.npz", **arrays)


@pytest.fixture(scope="module")
def digits():
    return DATASETS.create("digits", data_dir=None)


@pytest.fixture(scope="module")
def whole(digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write_folder(folder, "train", digits.train.limit(200, 0))
    write_folder(folder, "test", digits.test.limit(40, 0))
    return folder


@pytest.mark.parametrize("kind", ["task", "listed", "arrays"])
def test_own_files_train_the_same_as_the_built_in_dataset(run, whole, tmp_path, kind):
    limits = ("--train-limit", 200, "--test-limit", 40)
    run("train", "--dataset", "digits", *limits, *SMALL, "--out", tmp_path / "built-in")
    task = ("--task", f"{TASK}:{kind}", "--data-dir", whole)
    run("train", *task, *SMALL, "--out", tmp_path / "own")
    here, there = (
        load_file(tmp_path / name / "model.safetensors") for name in ("own", "built-in")
    )
    assert here.keys() == there.keys()
    assert all(here[name].equal(there[name]) for name in here)


@pytest.fixture
def owners(digits, tmp_path):
    """Two folders with different samples."""
    for number, name in enumerate(("alice", "bob")):
        folder = tmp_path / name
        folder.mkdir()
        start = 60 * number
        write_folder(folder, "train", digits.train.subset(range(start, start + 60)))
        write_folder(folder, "test", digits.test.subset(range(60)))
    return {name: tmp_path / name for name in ("alice", "bob")}


TRACED = """
import os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        os.write(log, os.fsencode(os.path.abspath(arguments[0])) + b"\\n")
sys.addaudithook(note)
from lightsplit.cli.app import main
main()
"""


STRACE = ("strace", "-f", "--seccomp-bpf", "-e", "trace=open,openat,openat2,creat")
CALLED = re.compile(r'open(?:at2?)?\([^"]*"([^"]+)", (.*)')


def called(log):
    """Return the files that a process opened here, as the system saw it."""
    found = [CALLED.search(line) for line in log.read_text().splitlines()]
    return {
        Path.cwd() / one[1]
        for one in found
        if one and "O_DIRECTORY" not in one[2] and " = -1 " not in one[2]
    }


@pytest.fixture
def traced(tmp_path):
    """Return what starts a traced command and returns the process."""
    running = []

    def call(name, *words, is_deep=False):
        with (tmp_path / f"{name}.out").open("w") as out:
            command = [sys.executable, "-c", TRACED, tmp_path / f"{name}.opened"]
            calls = [*STRACE, "-o", tmp_path / f"{name}.calls"] if is_deep else []
            process = subprocess.Popen(
                [*calls, *command, *map(str, words)],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        running.append(process)
        return process

    yield call
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def common():
    """Settings that both ends need, with a free port."""
    words = ("--task", TASK, "--clients", 2, "--heads", "private")
    return (*words, "--address", f"127.0.0.1:{free_port()}", *SMALL)


def opened(log, *, below):
    """Return the files that a traced process opened in a folder."""
    lines = {Path(line) for line in log.read_text().splitlines()}
    return {file for file in lines if file.is_relative_to(below)}


# Python, its packages with their list of fonts, ours, the task and the system.
PACKAGES = (sys.prefix, sys.base_prefix, matplotlib.get_cachedir())
OURS = (Path(lightsplit.__file__).parents[1], Path(TASK).parent)
SYSTEM = ("/usr", "/lib", "/etc", "/proc", "/sys", "/dev")


def elsewhere(log, *own):
    """Return what Python opened beside the installation and its own places."""
    return strange(opened(log, below="/"), *own)


def strange(files, *own):
    """Return those of the files that are nowhere a process may look."""
    places = [Path(place) for place in (*PACKAGES, *OURS, *SYSTEM, *own)]
    probes = Path(tempfile.gettempdir())  # Python tries whether it can write there
    return {
        file
        for file in files
        if file.parent != probes and not any(map(file.is_relative_to, places))
    }


def test_owners_train_on_their_own_folders_alone(owners, traced, common, tmp_path):
    """The server opens no data; an owner opens its data, its state and nothing else."""
    processes = [traced("server", "serve", *common, "--out", tmp_path / "run")]
    for name, folder in owners.items():
        mine = ("--name", name, "--data", folder, "--state", tmp_path / f"state-{name}")
        processes.append(traced(name, "join", *common, *mine))
    for process, name in zip(processes, ("server", *owners), strict=True):
        assert process.wait(300) == 0, (tmp_path / f"{name}.out").read_text()
    assert opened(tmp_path / "server.opened", below=tmp_path / "run")
    assert not elsewhere(tmp_path / "server.opened", tmp_path / "run")
    for name, folder in owners.items():
        log, state = tmp_path / f"{name}.opened", tmp_path / f"state-{name}"
        assert opened(log, below=folder)
        assert opened(log, below=state)
        assert not elsewhere(log, folder, state)
        assert elsewhere(log, state)  # it would be noticed
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["samples"] == 120


def test_an_owners_figures_are_torchmetrics_on_its_exported_model(
    owners, start, common, run, tmp_path
):
    """The server's half and an owner's give the figures that the run has reported."""
    words = (*common, "--task", f"{TASK}:measured")
    processes = [start("server", "serve", *words, "--out", tmp_path / "run")]
    for name, folder in owners.items():
        mine = ("--name", name, "--data", folder, "--state", tmp_path / f"state-{name}")
        processes.append(start(name, "join", *words, *mine))
    for process, name in zip(processes, ("server", *owners), strict=True):
        assert process.wait(120) == 0, (tmp_path / f"{name}.out").read_text()
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    figures = dict(zip(record["client_names"], record["client_figures"], strict=True))
    assert figures.keys() == owners.keys()
    for name, folder in owners.items():
        out, state = tmp_path / f"export-{name}", tmp_path / f"state-{name}"
        run("export", tmp_path / "run", "--owner", state, "--out", out)
        program = torch.export.load(out / "model.pt2").module()
        form = ImageForm(tuple("0123456789"), (8, 8))
        images, labels = default_collate(list(form.folder(folder / "test")))
        scores = program(images)
        expected = {
            "accuracy": MulticlassAccuracy(10, average="micro")(scores, labels),
            "auroc": MulticlassAUROC(10)(scores, labels),
        }
        found = {metric: figures[name][metric] for metric in expected}
        assert found == pytest.approx({m: float(v) for m, v in expected.items()})


@pytest.fixture
def is_deep():
    """Whether the system writes down what is opened, C and Rust included."""
    return shutil.which("strace") is not None


def copied(certificates, folder, *files):
    """Return a new folder with the authority's certificate and some of its files."""
    folder.mkdir()
    for file in ("ca.crt", *files):
        shutil.copy(certificates / file, folder)
    return folder


def test_certificates_keys_and_recordings_open_nothing_else(
    owners, traced, common, certificates, tmp_path, is_deep
):
    """Shared heads under TLS, sealed by a key, and everything that is sent recorded."""
    words = [*common, "--heads", "shared", "--certs"]
    at_door = copied(certificates, tmp_path / "door", "server.crt", "server.key")
    at_server = (*words, at_door, "--out", tmp_path / "run")
    who = [word for name in owners for word in ("--client", name)]
    processes = [traced("server", "serve", *at_server, *who, is_deep=is_deep)]
    places = {"server": [at_door, tmp_path / "run"]}
    key = tmp_path / "keys" / "head.key"
    key.parent.mkdir()
    SealingKey.generate().save(key)
    for name, folder in owners.items():
        files = (f"clients/{name}.crt", f"clients/{name}.key")
        mine = copied(certificates, tmp_path / f"certificate-{name}", *files)
        state = tmp_path / f"state-{name}"
        places[name] = [folder, state, mine, key]
        more = ("--data", folder, "--state", state, "--key", key, "--record")
        join = ("join", *words, mine, "--name", name, *more)
        processes.append(traced(name, *join, is_deep=is_deep))
    for process, name in zip(processes, places, strict=True):
        assert process.wait(200) == 0, (tmp_path / f"{name}.out").read_text()
    for name, own in places.items():
        own.append(tmp_path / f"{name}.opened")  # the log itself
        seen = opened(tmp_path / f"{name}.opened", below="/")
        seen |= called(tmp_path / f"{name}.calls") if is_deep else set()
        assert all(strange(seen, *own[:n], *own[n + 1 :]) for n in range(len(own) - 1))
        assert not strange(seen, *own)


def test_new_pictures_are_predicted_by_name(owners, start, common, run, tmp_path):
    """``predict --data`` names the files and the classes in its table."""
    alone = (*common, "--clients", 1)
    server = start("server", "serve", *alone, "--out", tmp_path / "run")
    mine = ("--name", "alice", "--state", tmp_path / "state")
    run("join", *alone, *mine, "--data", owners["alice"])
    assert server.wait(300) == 0
    address = ("--address", alone[alone.index("--address") + 1])
    again = start("again", "serve", "--resume", tmp_path / "run", *address)
    wait_until(lambda: "listening on port" in again.text, "the server")
    new, out = owners["bob"] / "test" / "3", tmp_path / "predictions.csv"
    run("predict", *alone, *mine, "--data", new, "--out", out, "--batch", 2)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == sorted(one.name for one in new.iterdir())
    assert {row["prediction"] for row in rows} <= set("0123456789")
    assert "label" not in rows[0]


EXPERIMENT = f"""
task = {{ name = "{TASK}" }}
training = {{ batch_size = 16, epochs = 1 }}
owners = {{ clients = 1, heads = "private" }}
"""


@pytest.fixture
def alice(owners, start, common, run, tmp_path, monkeypatch):
    """Alice trains alone; return her port and what starts the server again."""
    monkeypatch.chdir(tmp_path)
    Path("digits.toml").write_text(EXPERIMENT)
    place = common[common.index("--address") + 1]
    words = (tmp_path / "digits.toml", "--address", place)
    server = start("server", "serve", *words, "--out", tmp_path / "run")
    mine = ("--name", "alice", "--data", owners["alice"])
    run("join", *words, *mine, "--state", tmp_path / "runs" / "client-alice")
    assert server.wait(60) == 0

    def serve_again(name):
        again = ("serve", "--resume", tmp_path / "run", "--address", place)
        process = start(name, *again)
        wait_until(lambda: "listening on port" in process.text, "the server")
        return process

    return int(place.rpartition(":")[2]), serve_again


def test_a_predictor_stays_connected_and_outlives_the_servers_restart(alice):
    """One line carries all batches; after a restart there is a new one."""
    port, serve_again = alice
    first = serve_again("first")
    images = torch.rand(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    lines = set()
    with Proxy(port, lambda _direction, line, _chunk: lines.add(line)) as proxy:
        place = {"server": f"127.0.0.1:{proxy.port}", "state": "runs/client-alice"}
        with Predictor.connect("digits.toml", name="alice", **place) as predictor:
            whole = predictor(images)
            for size in (1, 3, 7):
                parts = [predictor(part) for part in images.split(size)]
                assert torch.allclose(torch.cat(parts), whole, atol=1e-5)
            assert len(lines) == 1
            assert predictor.chosen(whole) == [str(int(n)) for n in whole.argmax(1)]
            with pytest.raises(ConfigError, match="must be 1 to 512, got 600"):
                predictor(torch.zeros(600, 1, 8, 8))
            first.signal(signal.SIGTERM)
            first.wait(60)
            with pytest.raises(TransportError):
                predictor(images)
            serve_again("second")
            lines.clear()
            assert torch.equal(predictor(images), whole)
            assert torch.equal(predictor(images), whole)
            assert len(lines) == 1


def test_the_predictor_of_the_page_names_classes(alice, capsys):
    port, serve_again = alice
    serve_again("again")
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(code.replace("7443", str(port)), {})  # noqa: S102
    assert re.search(r"\['\d'(, '\d'){3}\]", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "train" / "ten").mkdir(), "'ten' is not one of"),
        (lambda folder: _spoil(folder / "train"), "is not a picture"),
        (lambda folder: _keep(folder / "train", 3), "fewer than a batch of 16"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_before_anything_is_sent(
    owners, common, run, tmp_path, damage, reason
):
    damage(owners["alice"])
    state = tmp_path / "state"
    mine = ("--name", "alice", "--data", owners["alice"], "--state", state)
    assert reason in run("join", *common, *mine, code=1)
    assert not state.exists()


def test_a_class_order_that_differs_is_refused_with_both(owners, start, common, run):
    """Classes are terms of the contract."""
    start("server", "serve", *common)
    task = ("--task", f"{TASK}:reordered")
    text = run(
        "join", *common, *task, "--name", "alice", "--data", owners["alice"], code=1
    )
    assert "the contracts differ in form" in " ".join(text.split())


def _spoil(folder):
    next(folder.rglob("*.png")).write_bytes(b"nothing")


def _keep(folder, count):
    for file in sorted(folder.rglob("*.png"))[count:]:
        file.unlink()
