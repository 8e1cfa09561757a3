"""A server that is killed after its last turn knows, when it is back, who has left."""

import json
import signal

import pytest
from lab.faults import Halts, left_behind
from lab.processes import wait_until
from lab.proxy import Proxy
from lab.runs import NAMES, assert_same_weights, reference

SHORT = {"epochs": 1}
SOON_SECONDS = 250  # less than the step timeout, for which a server waits at the end


@pytest.fixture
def cluster(make_cluster):
    made = make_cluster(
        SHORT,
        serve=["--step-timeout-seconds", 600],
        join=["--give-up-seconds", 600],
    )
    made.ports = dict.fromkeys(NAMES, made.start_server())
    return made


def told(cluster):
    """Return who has heard of the end, as the server has it on its disk."""
    file = cluster.folder / "server" / "checkpoint" / "farewells.json"
    return set(json.loads(file.read_text())["told"]) if file.exists() else set()


def kill_when_told(cluster, names):
    """Kill the server between the last of these farewells and its record.

    If it is quicker than the kill, what it has written since goes too.
    """
    wait_until(lambda: told(cluster) == set(names), "the farewells")
    cluster.server.signal(signal.SIGKILL)
    cluster.server.wait()
    for late in ("server.safetensors", "record.json"):
        (cluster.folder / "server" / late).unlink(missing_ok=True)


def record(cluster):
    return json.loads((cluster.folder / "server" / "record.json").read_text())


def test_a_server_whose_clients_have_left_writes_its_record_and_ends(cluster):
    for name in NAMES:
        cluster.start_client(name)
    kill_when_told(cluster, NAMES)
    assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
    cluster.start_server()
    assert cluster.server.wait(SOON_SECONDS) == 0, cluster.server.text
    assert "every client knows" in cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**SHORT))
    sides = {counts["hand_off"] for counts in record(cluster)["clients"].values()}
    assert len(sides) == 2  # turn 0 comes without a side, so one client got one less

    cluster.start_server()  # now it is asked for predictions, and says so
    wait_until(lambda: "lightsplit predict" in cluster.server.text, "its word")
    cluster.server.signal(signal.SIGTERM)
    assert cluster.server.wait() == 0

    side = (cluster.folder / "alice" / "client.safetensors").read_bytes()
    alice = cluster.start_client("alice")  # nobody is there any more
    assert alice.wait(SOON_SECONDS) == 0, alice.text
    assert "this client has its part" in alice.text
    assert alice.text.count("done: 2 steps") == 2
    assert (cluster.folder / "alice" / "client.safetensors").read_bytes() == side


def test_a_server_waits_for_the_one_client_that_has_not_heard_of_the_end(cluster):
    port, halts = cluster.ports["alice"], Halts(2)
    with Proxy(port) as line, Proxy(port, halts.look) as line_of_bob:
        cluster.ports |= {"alice": line.port, "bob": line_of_bob.port}
        for name in NAMES:
            cluster.start_client(name)
        with halts.next():  # in his last turn, which follows hers
            cluster.clients["alice"].signal(signal.SIGSTOP)
            line.cut()  # before the end is on its way to her
        kill_when_told(cluster, ["bob", "carol"])
        line.upstream_port = cluster.start_server()
        wait_until(lambda: "waits for alice" in cluster.server.text, "its word")
        cluster.clients["alice"].signal(signal.SIGCONT)
        assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
        assert cluster.server.wait(SOON_SECONDS) == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**SHORT))


def test_a_client_that_cannot_keep_its_part_can_still_come_back_for_it(cluster):
    """Its disk is full, say; the server waits, because it was not told 'heard'."""
    file = cluster.folder / "alice" / "client.safetensors"
    file.mkdir(parents=True)
    for name in NAMES:
        cluster.start_client(name)
    alice = cluster.clients["alice"]
    assert alice.wait() == 1
    assert "Traceback" not in alice.text
    assert f"{file}" in alice.text
    assert [cluster.clients[name].wait() for name in ("bob", "carol")] == [0, 0]
    assert cluster.server.code is None
    file.rmdir()
    assert cluster.start_client("alice").wait() == 0
    assert cluster.server.wait(SOON_SECONDS) == 0, cluster.server.text
    assert_same_weights(left_behind(cluster), reference(**SHORT))
