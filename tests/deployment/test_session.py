"""A connection from its Hello to its end."""

import threading
import time

import pytest

from lightsplit.errors import RemoteError, TransportError
from lightsplit.protocol.control import Hello, Ready, Welcome
from lightsplit.runs.plan import RunPlan


def test_the_first_message_must_be_hello(net, alone):
    with pytest.raises(RemoteError, match="expected Hello, got Ready"):
        net.DirectLine(alone()).call(Ready(1))


def test_a_replaced_connection_is_stale_and_its_step_undone(net, alone, enter):
    coordinator = alone()
    older = enter(coordinator)
    older.call(net.code(0, 0))
    newer = enter(coordinator)
    with pytest.raises(TransportError):
        older.call(net.gradient(0, 0))
    net.take_turn(newer, newer.order)
    assert coordinator._run._steps._server.applied == [(0, 0)]


def test_a_client_whose_message_is_being_worked_on_is_not_silent(
    net, alone, enter, pass_time
):
    """However long the server takes, and whoever asks meanwhile."""
    coordinator = alone(RunPlan(step_timeout_seconds=60))
    line = enter(coordinator)
    server, answer = (
        coordinator._run._steps._server,
        coordinator._run._steps._server.answer,
    )

    def slow(request):
        pass_time(61)
        time.sleep(0.15)
        return answer(request)

    server.answer = slow
    ticking = threading.Event()

    def tick():
        while not ticking.is_set():
            coordinator.wait(0.01)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        line.call(net.code(0, 0))
        line.call(net.gradient(0, 0))
    finally:
        ticking.set()
        ticker.join()
    assert server.applied == [(0, 0)]


def test_the_clock_runs_while_the_server_waits_for_the_client(net, alone):
    coordinator = alone()
    peer, idle = net.make_peer(), coordinator._idle
    session = coordinator.session(peer)
    assert idle.is_running(peer)
    session.handle(Hello("alice", coordinator.contract.to_json()))
    assert idle.is_running(peer)
    session.close()
    assert not idle.is_running(peer)


def test_the_clock_stands_still_while_a_client_waits_for_its_turn(
    net, make_coordinator
):
    coordinator = make_coordinator(names=["alice", "bob"], clients=2)
    line = net.LiveLine(coordinator, "bob")
    line.call(Hello("bob", coordinator.contract.to_json()))
    line.send(Ready(2))
    assert line.is_waiting
    assert not coordinator._idle.is_running(line.peer)
    line.close()


def test_a_connection_that_never_spoke_leaves_nothing_behind(net, alone):
    coordinator = alone()
    session = coordinator.session(net.make_peer())
    session.replied()
    session.close()
    assert coordinator.members[0].peer is None


def test_a_client_that_predicts_is_no_member_of_the_turns(net, alone):
    coordinator = alone()
    session = coordinator.session(net.make_peer())
    hello = Hello("alice", coordinator.contract.to_json(), "predict")
    assert session.handle(hello) == Welcome(0, "run")
    assert coordinator.members[0].peer is None
    reply = session.handle(net.code(0, 0, is_training=False))
    assert reply.kind == "output"
    session.replied()
    session.close()


def test_a_client_with_a_loop_of_its_own_is_told_that_this_server_grants_turns(
    net, alone
):
    coordinator = alone()
    line = net.DirectLine(coordinator)
    with pytest.raises(RemoteError, match="this server grants turns"):
        line.call(Hello("alice", coordinator.contract.to_json(), "loop"))
