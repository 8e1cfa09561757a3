"""Owners who record what they send audit it with their own files as the truth."""

import json
import signal
import stat
import sys
from pathlib import Path

import pytest
from lab.ports import free_port
from lab.processes import wait_until
from safetensors.torch import load_file

from lightsplit.experiments import read_experiment
from lightsplit.transports import tape

NOTES = ("record", "end")
OWN = Path(__file__).parents[1] / "audits" / "own"
TASK = f"{OWN / 'tasks.py'}:table"
SMALL = ("--batch-size", 16, "--epochs", 3, "--codec", "raw", "--heads", "private")


@pytest.fixture(scope="module")
def files():
    sys.path.insert(0, str(OWN))
    try:
        import files
    finally:
        sys.path.remove(str(OWN))
    return files


def common(clients):
    """Return settings that both ends need, with a free port."""
    address = ("--address", f"127.0.0.1:{free_port()}")
    return ("--task", TASK, "--clients", clients, *address, *SMALL)


def mine(tmp_path, name):
    files = ("--data", tmp_path / name, "--state", tmp_path / f"state-{name}")
    return ("--name", name, *files, "--record")


def entries_of(folder):
    record = json.loads((folder / "record.json").read_text())
    return {one["attack"]: one for one in record["audit"] if "message" not in one}


def train_two_owners(files, start, tmp_path):
    """Let two owners train and record; return the folder of one of them."""
    words, names = common(2), ("alice", "bob")
    processes = {"server": start("server", "serve", *words, "--out", tmp_path / "run")}
    for seed, name in enumerate(names):
        files.write_table(tmp_path / name, seed=seed)
        processes[name] = start(name, "join", *words, *mine(tmp_path, name))
    for process in processes.values():
        assert process.wait(300) == 0, process.text
    return tmp_path / "state-alice"


@pytest.mark.slow
def test_two_owners_record_and_audit_what_they_sent(files, start, run, tmp_path):
    """A server, two owners, an audit of one and a card of it, by commands alone."""
    state = train_two_owners(files, start, tmp_path)
    recording = state / tape.FILE_NAME
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600
    codes = [one.step for one in tape.places(recording) if one.what == tape.CODE]
    assert codes == list(range(24))  # 3 epochs of 8 batches, each once
    (tmp_path / "alice").rename(tmp_path / "moved")
    assert "there is no folder" in run("audit", state, code=1)
    attacks = ("--attack", "linear", "--attack", "row-inversion:steps=300")
    moved = ("--data", tmp_path / "moved", "--images", 32)
    run("audit", state, *moved, *attacks)
    check_figures(state)
    linear = entries_of(state)["linear"]
    assert linear["images"] == 32
    assert linear["metrics"]["r2"]["mean"] > 0.9
    assert linear["beats_trivial"] is True
    assert "in its steps 23 to 24" in linear["notes"][0]
    run("audit", state, *moved, "--attack", "label-hint")
    run("audit", state, *moved, "--attack", "linear", "--auxiliary-from", "test")
    run("report", state, "--card")
    page = (state / "card.html").read_text()
    assert "What was guessed of each column" in page
    assert "Samples beside guesses" in page
    assert "--during" in run("audit", state, "--during", *attacks[:2], code=1)
    assert "--record" in run("audit", tmp_path / "run", code=1)
    assert "is of client" in run("audit", state, *moved, "--client", 1 + 1, code=1)
    recording.unlink()
    assert "has no recording" in run("audit", state, *moved, code=1)
    check_whole(tmp_path / "run", state, run)


def check_figures(owner):
    """The record of the owner's folder has all bytes and the measured certificate."""
    record, end = (json.loads((owner / f"{n}.json").read_text()) for n in NOTES)
    assert record["bytes"] == end["figures"]["bytes"]
    assert record["certificate"] == end["figures"]["certificate"]
    assert record["certificate"]["distinct_codes"] > 0


def check_whole(server, owner, run):
    """Both parts of the run become one model, whose weights are theirs."""
    assert "--owner" in run("export", server, "--part", "whole", code=1)
    text = run("export", server, "--owner", server.parent, code=1)
    assert "is not a run" in " ".join(text.split())
    run("export", server, "--owner", owner, "--part", "whole")
    whole = load_file(server / "export" / "model.safetensors")
    for side, folder in (("client", owner), ("server", server)):
        trained = load_file(folder / f"{side}.safetensors")
        names = [name for name in trained if not name.startswith("optimizer")]
        assert names
        assert all(whole[f"{side}.{n}"].equal(trained[n]) for n in names)


@pytest.mark.slow
def test_a_killed_owner_leaves_a_recording_to_audit(files, start, run, tmp_path):
    """No trained side is there, so what needs it is refused with the reason."""
    words = (*common(1), "--epochs", 2000)
    files.write_table(tmp_path / "alice")
    start("server", "serve", *words, "--out", tmp_path / "run")
    client = start("alice", "join", *words, *mine(tmp_path, "alice"))
    recording = tmp_path / "state-alice" / tape.FILE_NAME
    wait_for_steps(recording, 40, client)
    client.signal(signal.SIGKILL)
    client.wait()
    state = recording.parent
    for side in state.glob("side-*"):
        side.unlink()
    assert read_experiment(state / "experiment.toml")
    run("audit", state, "--images", 32, "--attack", "linear")
    assert entries_of(state)["linear"]["metrics"]["r2"]["mean"] > 0.7
    text = run("audit", state, "--images", 32, "--attack", "row-inversion", code=1)
    assert "holds no trained side" in " ".join(text.split())
    (state / "secret").unlink()
    assert "--secret" in run("audit", state, "--attack", "linear", code=1)


@pytest.mark.slow
def test_a_full_disk_stops_the_owner_and_loses_nothing(files, start, run, tmp_path):
    """The same command goes on with the run when there is room again."""
    words = common(1)
    files.write_table(tmp_path / "alice")
    server = start("server", "serve", *words, "--out", tmp_path / "run")
    recording = tmp_path / "state-alice" / tape.FILE_NAME
    recording.parent.mkdir()
    recording.symlink_to("/dev/full")
    text = run("join", *words, *mine(tmp_path, "alice"), code=1)
    assert "sent.tape: No space left on device" in " ".join(text.split())
    recording.unlink()
    run("join", *words, *mine(tmp_path, "alice"))
    assert server.wait(300) == 0
    assert json.loads((tmp_path / "run" / "record.json").read_text())["steps"] == 24


def wait_for_steps(recording, count, process):
    """Wait until so many exchanges are recorded; fail early if the client is gone."""

    def is_there():
        assert process.code is None, process.text
        return recording.exists() and len(list(tape.places(recording))) >= count

    wait_until(is_there, "the recording", 240)
