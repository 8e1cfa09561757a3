"""Clients agree on a run's key through a server that cannot read it."""

import re
import signal

import pytest
from lab.processes import wait_until
from lab.runs import NAMES, Network

from lightsplit.transports.sealing import SealingKey

SHORT = {"epochs": 1, "heads": "shared"}


@pytest.fixture
def start(make_cluster, zygote, certificates, tmp_path):
    """Return what starts a server and clients that have certificates and no key."""

    def call(settings=SHORT, port=None):
        cluster = make_cluster(settings, serve=["--certs", certificates])
        cluster.ports = dict.fromkeys(NAMES, port or cluster.start_server())

        def join(name):
            command = cluster.join_command(name)
            at = command.index("--key")
            command = [*command[:at], *command[at + 2 :], "--certs", certificates]
            log = tmp_path / f"{name}-{len(list(tmp_path.glob('*.log')))}.log"
            cluster.clients[name] = zygote.start(log, *command)
            return cluster.clients[name]

        cluster.join = join
        return cluster

    return call


def keys_of(cluster):
    return [
        SealingKey.load(file)
        for name in NAMES
        for file in (cluster.folder / name).glob("run-*.key")
    ]


def test_all_clients_get_one_key_that_the_server_does_not_have(start):
    cluster = start()
    for name in NAMES:
        cluster.join(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    keys = keys_of(cluster)
    assert len(keys) == 3
    (fingerprint,) = {key.fingerprint for key in keys}
    for client in cluster.clients.values():
        told = re.search(r"fingerprint (\w+), agreed between (.*)\n", client.text)
        assert told[1] == fingerprint
        assert told[2] == "alice, bob, carol"
    secret = keys[0]._secret
    for file in (cluster.folder / "server").rglob("*"):
        assert file.is_dir() or secret not in file.read_bytes()
    assert not list(cluster.folder.rglob("*.draft"))


def test_every_run_has_a_key_of_its_own(start, tmp_path):
    first = start()
    for name in NAMES:
        first.join(name)
    for process in first.processes.values():
        assert process.wait() == 0, process.text
    (tmp_path / "server").rename(tmp_path / "server-of-before")
    first.ports = dict.fromkeys(NAMES, first.start_server())
    for name in NAMES:
        first.join(name)
    for process in first.processes.values():
        assert process.wait() == 0, process.text
    keys = keys_of(first)
    assert len({key.fingerprint for key in keys}) == 2
    assert len(keys) == 6


def test_a_client_that_is_killed_while_the_others_wait_comes_back(start):
    cluster = start()
    alice = cluster.join("alice")
    wait_until(lambda: list(cluster.folder.glob("alice/run-*.draft")), "her offer")
    alice.signal(signal.SIGKILL)
    alice.wait()
    for name in NAMES:
        cluster.join(name)
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text


def test_a_client_that_is_killed_after_its_offer_is_not_locked_out(
    start, certificates, tmp_path
):
    """The others answer its first offer, so its second one must be the same."""
    with Network(tmp_path, tls=certificates, **SHORT) as network:
        cluster = start(port=network.port)
        offers = network.coordinator._control.keys._rounds[0]
        alice = cluster.join("alice")
        wait_until(lambda: len(offers) == 1, "her offer")
        alice.signal(signal.SIGKILL)
        alice.wait()
        others = [cluster.join(name) for name in ("bob", "carol")]
        wait_until(lambda: len(offers) == 3, "the offers of the others")
        for process in (cluster.join("alice"), *others):
            assert process.wait() == 0, process.text
        network.finish()
    assert not list(cluster.folder.glob("*/run-*.offer"))


def test_a_restarted_client_uses_the_key_in_its_folder(start):
    cluster = start({**SHORT, "epochs": 12})
    for name in NAMES:
        cluster.join(name)
    log = cluster.folder / "alice" / "turns.jsonl"
    wait_until(lambda: log.exists() and len(log.read_text()) > 300, "some turns")
    alice = cluster.clients["alice"]
    alice.signal(signal.SIGKILL)
    alice.wait()
    again = cluster.join("alice")
    for process in cluster.processes.values():
        assert process.wait() == 0, process.text
    assert re.search(r"the run's key: fingerprint \w+\n", again.text)


def test_a_client_that_lost_its_folder_is_told_so(start, tmp_path):
    cluster = start({**SHORT, "epochs": 500})
    for name in NAMES:
        cluster.join(name)
    log = cluster.folder / "alice" / "turns.jsonl"
    wait_until(lambda: log.exists() and len(log.read_text()) > 300, "some turns")
    cluster.clients["alice"].signal(signal.SIGKILL)
    cluster.clients["alice"].wait()
    (tmp_path / "alice").rename(tmp_path / "lost")
    again = cluster.join("alice")
    assert again.wait() == 1
    assert "the run has begun, and its key cannot be agreed on again" in again.text
