"""The counted bytes travel: in one process, at both ends and on the socket."""

import contextlib

import pytest
from lab.proxy import Proxy
from lab.runs import NAMES, Network, reference

HANDSHAKE_BYTES = 8192  # of one connection: certificates both ways, HTTP/2's settings
BATCH_64 = {"batch_size": 64, "train_limit": 384, "test_limit": 64, "epochs": 1}


def run_through_proxies(network):
    """Run and return the bytes that crossed the sockets."""
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(network.port)) for _ in NAMES]
        for name, proxy in zip(NAMES, proxies, strict=True):
            network.join(name, port=proxy.port)
        network.finish()
    return sum(sum(proxy.bytes.values()) for proxy in proxies)


@pytest.mark.parametrize(
    "settings",
    [
        {"codec": "raw"},
        {"codec": "raw", "heads": "private", "topology": "vanilla"},
        {"codec": "lightsplit-f", "epochs": 2},
    ],
    ids=str,
)
def test_the_socket_carries_the_counted_bytes(settings, certificates, tmp_path):
    settings = {**BATCH_64, **settings}
    with Network(tmp_path, tls=certificates, **settings) as network:
        crossed = run_through_proxies(network)
    counted = network.coordinator.progress.bytes["total"]
    assert counted < crossed < 1.02 * counted + len(NAMES) * HANDSHAKE_BYTES


def test_both_ends_count_the_same_and_so_does_one_process(tmp_path):
    with Network(tmp_path, **BATCH_64) as network:
        network.join_all()
        got = network.finish()
    assert got.bytes == reference(**BATCH_64).bytes
    for kind, count in got.bytes.items():
        assert sum(meter.counts[kind] for meter in network.meters.values()) == count


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_client_counts_every_kind_as_the_server_does(heads, tmp_path):
    with Network(tmp_path, epochs=1, heads=heads) as network:
        network.join_all()
        network.finish()
    for member in network.coordinator.members:
        assert network.meters[member.name].by_kind() == member.meter.by_kind()
        assert member.meter.counts["setup"]
        assert bool(member.meter.counts["hand_off"]) == (heads == "shared")


def test_every_hand_off_is_counted_each_way(tmp_path):
    with Network(tmp_path, epochs=1) as network:
        network.join_all()
        network.finish()
    side = network.ends["alice"].side
    counted = network.coordinator.progress.bytes["hand_off"]
    turns = network.coordinator.progress.turns
    most = (2 * turns - 1 + len(NAMES)) * len(side)  # the first turn gets none
    assert 0.9 * most < counted <= most  # the first sides have no optimizer yet
