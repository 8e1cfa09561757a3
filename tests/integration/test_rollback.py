"""A server that is restored from an older checkpoint: its clients notice and say so."""

import json
import shutil
import signal

import pytest
from lab.faults import Halts
from lab.processes import wait_until
from lab.proxy import Proxy
from lab.runs import NAMES

LONG = {"epochs": 8, "heads": "private"}


def log_of(cluster, name):
    file = cluster.folder / name / "turns.jsonl"
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def turns_done(cluster, name):
    return sum(line["event"] == "done" for line in log_of(cluster, name))


def run_until_restored(cluster):
    """Let the run go on, then put the server back to its first checkpoint."""
    kept = cluster.folder / "older"
    checkpoint = cluster.folder / "server" / "checkpoint"
    halts = Halts(4, 30)  # in Alice's second turn, and after her fifth
    with Proxy(cluster.start_server(), halts.look) as line:
        cluster.ports = dict.fromkeys(NAMES, line.port)
        for name in NAMES:
            cluster.start_client(name)
        with halts.next():
            wait_until(lambda: turns_done(cluster, "alice") > 0, "the first turn")
            shutil.copytree(checkpoint, kept)
        with halts.next():
            wait_until(lambda: turns_done(cluster, "alice") > 4, "the fifth turn")
            for process in cluster.processes.values():
                process.signal(signal.SIGKILL)
            for process in cluster.processes.values():
                process.wait()
    shutil.rmtree(checkpoint)
    shutil.copytree(kept, checkpoint)
    return cluster.start_server()


def make(make_cluster, *join, settings=LONG):
    return make_cluster(settings, serve=["--checkpoint-every", 1000], join=join)


def test_owners_are_warned_and_the_log_has_every_turn(make_cluster):
    cluster = make(make_cluster)
    port = run_until_restored(cluster)
    cluster.ports = dict.fromkeys(NAMES, port)
    for name in NAMES:
        cluster.start_client(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    text = cluster.clients["alice"].text
    assert "WARNING" in text
    assert "the server went back in run" in text
    assert text.count("the server went back once") == 1
    lines = log_of(cluster, "alice")
    assert [one["event"] for one in lines].count("went back") == 1
    after = [one["event"] for one in lines].index("went back")
    again = [one["steps"] for one in lines[after:] if one["event"] == "done"]
    assert set(range(1, 17)) == set(again)  # 8 epochs of two steps, all of them again
    assert lines[-1]["event"] == "finished"
    assert len({one["run"] for one in lines}) == 1


ENDS = {  # who is told to end, how, and what becomes of Alice
    "a signal": ("alice", signal.SIGTERM, 128 + signal.SIGTERM),
    "an error": ("server", signal.SIGKILL, 1),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_warning_is_the_last_word_also_of_a_client_that_ends_early(
    end, make_cluster
):
    whom, how, code = ENDS[end]
    longer = {**LONG, "epochs": 200}
    cluster = make(make_cluster, "--give-up-seconds", 1, settings=longer)
    cluster.ports = dict.fromkeys(NAMES, run_until_restored(cluster))
    for name in NAMES:
        cluster.start_client(name)
    alice = cluster.clients["alice"]
    wait_until(lambda: "the server went back in run" in alice.text, "the warning")
    cluster.processes[whom].signal(how)
    assert alice.wait() == code, alice.text
    last = alice.text[alice.text.rindex("WARNING") :]
    assert "the server went back once" in last
    assert "error" not in last


def sides_of(cluster, name):
    """Return the sides that a client kept; a killed one may leave a draft, too."""
    return {p.name for p in (cluster.folder / name).glob("side-*.safetensors")}


def test_a_client_that_does_not_go_along_leaves_and_changes_nothing(make_cluster):
    cluster = make(make_cluster, "--no-rollback")
    port = run_until_restored(cluster)
    cluster.ports = dict.fromkeys(NAMES, port)
    sides = sides_of(cluster, "alice")
    for name in NAMES:
        cluster.start_client(name)
    alice = cluster.clients["alice"]
    assert alice.wait() == 1
    assert "the server went back in run" in alice.text
    assert "--no-rollback" in alice.text
    assert "Traceback" not in alice.text
    assert sides_of(cluster, "alice") == sides
    assert log_of(cluster, "alice")[-1]["event"] == "refused"
