"""A client that stands still loses its turn, not its place."""

import signal
import threading

import pytest
from lab.faults import Moments, lines, wait_until_away
from lab.processes import wait_until
from lab.runs import NAMES, PATIENCE_SECONDS, Network, assert_same_state, reference
from safetensors.torch import load_file

SHORT = {"step_timeout_seconds": 1.5}


class Pause:
    """Stops the process that ``choose`` names, once."""

    def __init__(self, cluster, choose):
        self.name = None
        self.happened = threading.Event()
        self._cluster = cluster
        self._choose = choose

    def strike(self, speaker):
        self.name = self._choose(speaker)
        self._cluster.clients[self.name].signal(signal.SIGSTOP)
        self.happened.set()
        return True


def run_with_pause(network, cluster, choose, seed):
    """Run with one client stopped until the server has given it up."""
    pause = Pause(cluster, choose)
    moments = Moments(pause.strike, count=1, seed=seed, longest_gap=12)
    with lines(cluster, moments, network.port):
        for name in NAMES:
            cluster.start_client(name)
        assert pause.happened.wait(PATIENCE_SECONDS)
        wait_until_away(network.coordinator, pause.name)
        turns = network.coordinator.progress.turns
        cluster.clients[pause.name].signal(signal.SIGCONT)
        wait_until(lambda: network.coordinator.progress.turns > turns, "the next turn")
        assert [cluster.clients[name].wait() for name in NAMES] == [0, 0, 0]
        network.finish()


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize("who", ["client in turn", "waiting client"])
def test_a_paused_client_is_cut_off_and_comes_back(who, heads, make_cluster, tmp_path):
    settings = {"heads": heads, "epochs": 3}
    cluster = make_cluster(settings, join=["--give-up-seconds", 300])
    after = {name: NAMES[(i + 1) % 3] for i, name in enumerate(NAMES)}
    choose = (lambda name: name) if who == "client in turn" else after.get
    with Network(tmp_path, plan=SHORT, **settings) as network:
        run_with_pause(network, cluster, choose, seed=f"{who} {heads}")
    expected = reference(**settings)
    assert_same_state(network.server.side.state(), expected.server)
    for name, state in zip(NAMES, expected.clients, strict=True):
        assert_same_state(load_file(tmp_path / name / "client.safetensors"), state)
