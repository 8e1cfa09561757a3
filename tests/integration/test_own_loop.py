"""Loops of one's own in real processes, killed in the middle and started again."""

import json
import signal
import time
from pathlib import Path

import pytest
import torch
from lab.ports import free_port
from safetensors.torch import load_file

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parent / "own_loop" / "loop.py"
STEPS = 20


class Lab:
    """A folder, a port that stays the same, and the processes of one run."""

    def __init__(self, folder, zygote):
        self.folder = folder
        self._zygote = zygote
        folder.mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        self.started = []

    def start(self, role, *more):
        log = self.folder / f"{len(self.started)}.log"
        words = (role, self.folder, self.address, *more)
        process = self._zygote.start(log, *words, program=SCRIPT)
        self.started.append(process)
        return process

    def owner(self, name="alice", steps=STEPS):
        return self.start("owner", name, steps)

    def limit(self, step, name="alice"):
        """Let an owner make so many steps; None lets it go on to its end."""
        file = self.folder / f"{name}.limit"
        if step is None:
            file.unlink()
            return
        draft = file.with_suffix(".tmp")
        draft.write_text(str(step))
        draft.replace(file)

    def wait_for(self, step, name="alice", seconds=240):
        """Wait until an owner has made so many steps."""
        deadline = time.monotonic() + seconds
        file = self.folder / f"{name}.step"
        while not file.exists() or int(file.read_text() or 0) < step:
            for process in self.started:
                assert process.code in (None, 0, -9), process.text
            assert time.monotonic() < deadline, f"{name} did not reach step {step}"
            time.sleep(0.01)


@pytest.fixture
def make_lab(zygote, tmp_path):
    return lambda name: Lab(tmp_path / name, zygote)


def finish(process):
    assert process.wait(300) == 0, process.text


def kill(process):
    process.signal(signal.SIGKILL)
    process.wait()


def stop(server):
    server.signal(signal.SIGTERM)
    finish(server)


def result(lab, names=("alice",)):
    """Return the updates at the server, its weights, and those of the owners."""
    newest = lab.folder / (lab.folder / "latest").read_text()
    applied = json.loads((newest / "clients.json").read_text())["applied"]
    owners = {}
    for name in names:
        state = torch.load(lab.folder / f"{name}.last")
        state["position"] = state["position"][:2]  # the name of a run is random
        owners |= {f"{name}.{key}": value for key, value in state.items()}
    return applied, {**load_file(newest / "server.safetensors"), **owners}


@pytest.fixture(scope="module")
def undisturbed(_zygote, tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("loop") / "undisturbed", _zygote)
    server = lab.start("server")
    finish(lab.owner())
    stop(server)
    return result(lab)


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        assert torch.equal(found[1][name], value), name


def test_a_server_that_is_killed_loses_nothing_and_applies_nothing_twice(
    make_lab, undisturbed
):
    lab = make_lab("server")
    lab.limit(6)
    server, owner = lab.start("server"), lab.owner()
    for step, limit in ((4, 13), (12, None)):  # before the first save, between two
        lab.wait_for(step)
        kill(server)
        lab.limit(limit)
        server = lab.start("server")
    finish(owner)
    stop(server)
    assert_same(result(lab), undisturbed)


def test_an_owner_that_is_killed_goes_on_from_its_own_checkpoint(make_lab, undisturbed):
    lab = make_lab("owner")
    lab.limit(14)
    server, owner = lab.start("server"), lab.owner()
    lab.wait_for(13)  # its checkpoint is of step 10
    kill(owner)
    lab.limit(None)
    finish(lab.owner())
    stop(server)
    assert_same(result(lab), undisturbed)


def test_both_killed_at_once_meet_again_at_the_owners_checkpoint(make_lab, undisturbed):
    lab = make_lab("both")
    lab.limit(9)
    server, owner = lab.start("server"), lab.owner()
    lab.wait_for(8)
    for process in (server, owner):
        kill(process)
    lab.limit(None)
    server = lab.start("server")
    finish(lab.owner())
    stop(server)
    assert_same(result(lab), undisturbed)


def test_of_two_owners_one_is_killed_and_every_update_counts_once(make_lab):
    lab = make_lab("two")
    lab.limit(14)
    server = lab.start("server")
    alice, bob = lab.owner("alice"), lab.owner("bob", 30)
    lab.wait_for(13)
    kill(alice)
    lab.limit(None)
    alice = lab.owner("alice")
    finish(alice)
    finish(bob)
    stop(server)
    assert result(lab, ("alice", "bob"))[0] == {"alice": STEPS, "bob": 30}
