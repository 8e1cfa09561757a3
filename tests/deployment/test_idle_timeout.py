import pytest

from lightsplit.deployment import idle_timeout as module
from lightsplit.deployment.idle_timeout import IdleTimeout
from lightsplit.transports import Peer


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


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


def test_only_clients_that_wait_for_too_long_are_named(clock):
    idle, slow, quick = IdleTimeout(60), make_peer(), make_peer()
    idle.start(slow)
    clock[0] += 61
    idle.start(quick)
    assert idle.expired() == [slow]
    assert len(idle) == 2
    idle.start(slow)  # a new wait counts from its own start
    assert idle.expired() == []
    assert IdleTimeout(60).expired() == []


def test_a_client_that_makes_several_moves_has_the_time_of_all_of_them(clock):
    idle, peer = IdleTimeout(60), make_peer()
    idle.start(peer, moves=3)
    clock[0] += 180
    assert idle.expired() == []
    clock[0] += 1
    assert idle.expired() == [peer]
