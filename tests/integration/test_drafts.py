"""What processes write is whole and on the disk, whenever they are killed.

A draft is a file or folder under a name of its own until it is complete. A process that
is stopped while one is there, and then killed, leaves it behind.
"""

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lab.faults import left_behind
from lab.processes import wait_until
from lab.runs import NAMES, PATIENCE_SECONDS, assert_same_weights, reference

LONG = {"epochs": 20, "heads": "private"}  # 120 turns of one step
TRIES = 200


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(
        LONG, serve=["--checkpoint-every", 1], join=["--give-up-seconds", 300]
    )


def drafts(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.tmp"))


def is_stopped(process):
    status = Path(f"/proc/{process.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def wait_for_a_draft(folder):
    """Look without a pause: a draft is there for a few thousandths of a second."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(folder.glob("*.tmp")):
        assert time.monotonic() < deadline, "a draft never came"


def kill_while_writing(process, folder):
    """Kill a process between the first and the last byte of what it writes there."""
    for _ in range(TRIES):
        wait_for_a_draft(folder)
        process.signal(signal.SIGSTOP)
        wait_until(lambda: is_stopped(process), "the stop")
        if drafts(folder):
            process.signal(signal.SIGKILL)
            process.wait()
            return
        process.signal(signal.SIGCONT)  # it was whole by then
    pytest.fail(f"no draft in {TRIES} tries")


def restart(cluster, victim):
    """Start a process again; clients follow a server to its new port."""
    if victim != "server":
        cluster.start_client(victim)
        return
    for name in NAMES:
        cluster.clients[name].signal(signal.SIGKILL)
        cluster.clients[name].wait()
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)


@pytest.mark.parametrize("victim", ["server", "alice"])
def test_a_process_killed_while_it_writes_leaves_no_draft_after_it_is_resumed(
    victim, cluster
):
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    for name in NAMES:
        cluster.start_client(name)
    folder = cluster.folder / victim
    writes = folder / "checkpoint" if victim == "server" else folder
    wait_until(lambda: any(writes.glob("*-00000003*")), "a third step")
    kill_while_writing(cluster.processes[victim], writes)
    assert drafts(folder)
    (folder / "record.json.0badcafe.tmp").write_text("{")  # as if killed at the end
    restart(cluster, victim)
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    assert not drafts(cluster.folder)
    assert_same_weights(left_behind(cluster), reference(**LONG))


CALLS = re.compile(
    r'fsync\(\d+<(?P<synced>[^>]*)>|rename\("(?P<old>[^"]*)", "(?P<new>[^"]*)"'
)


@pytest.fixture
def strace(tmp_path):
    """Return what writes down how a process syncs and renames, until it ends."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed, which shows what a process asks for")
    said, log = tmp_path / "strace", tmp_path / "calls"
    watchers = []

    def watch(process):
        command = [program, "-f", "-y", "-e", "trace=fsync,rename", "-o", str(log)]
        with said.open("wb") as file:
            watchers.append(
                subprocess.Popen(
                    [*command, "-p", str(process.pid)], stderr=file, stdout=file
                )
            )
        wait_until(said.read_text, "strace")
        if "attached" not in said.read_text():
            pytest.skip(f"nobody may watch a process here: {said.read_text()}")
        return lambda: calls(watchers[0], log)

    yield watch
    for watcher in watchers:
        watcher.kill()
        watcher.wait()


def calls(watcher, log):
    """Return in order what was synced, and (old, new) of what was renamed."""
    watcher.wait(PATIENCE_SECONDS)
    text = log.read_text()
    assert " = -1 " not in text
    found = CALLS.finditer(text)
    return [one["synced"] or (one["old"], one["new"]) for one in found]


def test_a_server_syncs_what_it_names_and_then_the_folder_of_the_name(
    make_cluster, strace
):
    cluster = make_cluster({}, serve=["--checkpoint-every", 1])
    cluster.ports = dict.fromkeys(NAMES, cluster.start_server())
    seen = strace(cluster.server)
    for name in NAMES:
        cluster.start_client(name)
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    assert cluster.server.wait() == 0, cluster.server.text
    order = seen()
    server = cluster.folder / "server"
    assert str(server) in order[: order.index(str(server / "checkpoint"))]
    named = [at for at, call in enumerate(order) if isinstance(call, tuple)]
    kept = [Path(order[at][1]).name for at in named]
    steps = [name for name in kept if name.startswith("step-")]
    assert steps == [f"step-{number:08d}" for number in range(reference().steps + 1)]
    assert kept.count("latest") == len(steps)
    assert {"server.safetensors", "record.json"} < set(kept)
    for at in named:
        draft, new = order[at]
        assert order[at - 1] == draft  # its last byte, or its own names
        assert order[at + 1] == str(Path(new).parent)
    for name in steps:
        draft = server / "checkpoint" / f"{name}.tmp"
        whole = {str(draft / file.name) for file in newest(server).iterdir()}
        assert whole < {call for call in order if isinstance(call, str)}


def newest(server):
    folder = server / "checkpoint"
    return folder / (folder / "latest").read_text()
