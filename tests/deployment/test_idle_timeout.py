import time

from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.transports import Peer


def make_peer():
    return Peer(None, lambda: None, lambda: True)


def test_the_clock_runs_from_a_start_to_a_stop():
    idle, peer = IdleTimeout(60), make_peer()
    assert not idle.is_running(peer)
    idle.start(peer)
    assert idle.is_running(peer)
    idle.stop(peer)
    assert not idle.is_running(peer)
    idle.stop(peer)  # an ended session stops it once more


def test_only_clients_that_wait_for_too_long_are_named():
    idle, slow, quick = IdleTimeout(0.02), make_peer(), make_peer()
    idle.start(slow)
    began = time.monotonic()
    while time.monotonic() - began < 0.03:
        pass
    idle.start(quick)
    assert idle.expired() == [slow]
    assert len(idle) == 2
    idle.start(slow)  # a new wait counts from its own start
    assert idle.expired() == []
    assert IdleTimeout(0.02).expired() == []


def test_a_client_that_makes_several_moves_has_the_time_of_all_of_them():
    idle, peer = IdleTimeout(0.0), make_peer()
    idle.start(peer)
    assert idle.expired() == [peer]
    patient = IdleTimeout(60.0)
    patient.start(peer, moves=3)
    assert patient._deadlines[peer] - time.monotonic() > 120
