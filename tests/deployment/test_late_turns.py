"""With private heads a turn begins before the last one is handed in."""

import pytest

from lightsplit.deployment.coordinator import Coordinator
from lightsplit.errors import TransportError
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.runs import checkpoint_folder
from lightsplit.runs.plan import RunPlan


@pytest.fixture
def private(net, tmp_path):
    """Two clients with private heads; alice's first turn is applied."""
    lines = []

    def join(coordinator, name):
        line = net.LiveLine(coordinator, name)
        lines.append(line)
        line.call(Hello(name, coordinator.contract.to_json()))
        line.send(Ready(2))
        return line

    def private():
        coordinator = Coordinator(
            net.CountingServer(),
            net.make_contract(heads="private", clients=2),
            RunPlan(epochs=2),
            run="run",
            folder=tmp_path,
            names=["alice", "bob"],
        )
        alice, bob = join(coordinator, "alice"), join(coordinator, "bob")
        assert alice.receive().turn == 0
        step(net, alice, 0)
        return coordinator, alice, bob

    private.join = join
    yield private
    for line in lines:
        line.close()


def step(net, line, client, number=0):
    """Do a step and return the replies."""
    return [
        line.call(net.code(client, number)),
        line.call(net.gradient(client, number)),
    ]


def test_the_next_client_begins_while_the_last_one_is_still_at_work(private, net):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    step(net, bob, 1)
    assert coordinator._run._steps._server.applied == [(0, 0), (1, 0)]
    bob.send(TurnDone(1, loss=2.0))
    assert bob.is_waiting
    alice.send(TurnDone(0, loss=1.0))
    assert alice.receive().turn == 2
    assert coordinator.progress.loss_sum == 6.0
    assert bob.is_waiting
    step(net, alice, 0, 1)
    assert bob.receive().turn == 3


def test_a_client_that_broke_off_before_its_turn_was_handed_in_repeats_it(private, net):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    alice.close()
    step(net, bob, 1)
    bob.send(TurnDone(1))
    assert bob.is_waiting
    again = private.join(coordinator, "alice")
    order = again.receive()
    assert (order.turn, order.done, order.first_step) == (0, 1, 0)
    replies = step(net, again, 0)
    assert replies[1].gradient[0, 0] == 1  # as it was when this was the first step
    assert coordinator._run._steps._server.applied == [(0, 0), (1, 0)]
    assert again.call(TurnDone(0)).turn == 2
    assert bob.is_waiting


def test_a_client_that_waits_for_a_late_turn_may_leave_and_come_back(private, net):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    step(net, bob, 1)
    bob.send(TurnDone(1))
    assert bob.is_waiting
    bob.close()
    again = private.join(coordinator, "bob")
    order = again.receive()
    assert (order.turn, order.done) == (1, 1)
    alice.send(TurnDone(0))
    again.send(TurnDone(1))
    assert alice.receive().turn == 2
    step(net, alice, 0, 1)
    assert again.receive().turn == 3
    assert coordinator._run._steps._server.applied == [(0, 0), (1, 0), (0, 1)]


def test_a_stop_waits_for_a_late_turn_and_saves_it(private, tmp_path):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    bob.close()
    coordinator.stop()
    assert not coordinator.wait(0)
    with pytest.raises(TransportError, match="may come back"):
        alice.call(TurnDone(0))
    assert coordinator.wait(0)
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["client_steps"] == [1, 0]


def test_a_stop_does_not_wait_for_a_client_that_left_after_its_last_step(
    private, net, tmp_path
):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    coordinator.stop()
    assert not coordinator.wait(0)
    alice.close()
    assert coordinator.wait(0)
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 0  # what was not handed in is not saved


def test_a_stop_ends_when_the_late_turn_is_in_and_the_next_one_broke_off(
    private, net, tmp_path
):
    coordinator, alice, bob = private()
    assert bob.receive().turn == 1
    step(net, bob, 1)
    coordinator.stop()
    bob.close()
    assert not coordinator.wait(0)
    with pytest.raises(TransportError, match="may come back"):
        alice.call(TurnDone(0))
    assert coordinator.wait(0)
    _, content = checkpoint_folder.read(tmp_path, coordinator.contract.digest)
    assert content["progress"]["steps"] == 0  # bob's turn lies between
