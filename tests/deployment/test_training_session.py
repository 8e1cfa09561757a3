"""The messages that a client may send at each moment, and their replies."""

import pytest

from lightsplit.errors import RemoteError
from lightsplit.protocol.control import Finished, Grant, Heard, Hello, Ready, TurnDone
from lightsplit.runs.plan import RunPlan


def test_only_an_acknowledgement_answers_the_end(net, alone, enter):
    coordinator = alone(RunPlan(max_steps=1))
    line = enter(coordinator)
    net.take_turn(line, line.order)
    with pytest.raises(RemoteError, match="expected Heard, got Ready"):
        line.call(Ready(1))
    assert not coordinator.members[0].is_told


def test_a_refusal_ends_the_session_and_is_told(net, alone, enter):
    coordinator = alone()
    line = enter(coordinator)
    with pytest.raises(RemoteError, match="alice is client 0, not 7"):
        line.call(net.code(7, 0))
    assert line.peer.is_alive()  # not cancelled: the client must read why
    assert coordinator.members[0].peer is None


def test_a_message_that_is_no_step_is_refused_in_a_turn(alone, enter):
    line = enter(alone())
    with pytest.raises(RemoteError, match="expected a step, got Ready"):
        line.call(Ready(2))


def test_the_second_message_must_be_ready(net, alone):
    coordinator = alone()
    line = net.DirectLine(coordinator)
    line.call(Hello("alice", coordinator.contract.to_json()))
    with pytest.raises(RemoteError, match="expected Ready, got TurnDone"):
        line.call(TurnDone(0))
    assert coordinator.members[0].peer is None


def test_a_message_that_the_modules_cannot_compute_is_refused(net, alone, enter):
    coordinator = alone()

    def fail(_request):
        raise RuntimeError("mat1 and mat2\ncannot be multiplied")

    coordinator._run._steps._server.answer = fail
    line = enter(coordinator)
    with pytest.raises(RemoteError, match="step 0 cannot be computed: mat1 and mat2 c"):
        line.call(net.code(0, 0))


def test_a_session_grants_turns_until_the_run_is_over(net, alone, enter):
    line = enter(alone(RunPlan(max_steps=2)))
    assert line.order == Grant(0, 1, 0, run_steps=2)
    second = net.take_turn(line, line.order)
    assert (second.turn, second.first_step) == (1, 1)
    assert net.take_turn(line, second) == Finished("schedule", 1)
    line.finish(Heard())


def test_bytes_are_counted_when_the_reply_is_on_its_way(net, alone):
    coordinator = alone()
    session = coordinator.session(net.make_peer())
    session.handle(Hello("alice", coordinator.contract.to_json()))
    session.handle(Ready(2))
    meter = coordinator.members[0].meter
    session.handle(net.code(0, 0))
    assert meter.counts["code"] == 0
    session.replied()
    assert meter.counts["code"] == 2 * 4 * 4
    session.replied()  # once for each reply
    assert meter.counts["code"] == 2 * 4 * 4


def test_a_session_that_ends_before_its_reply_left_still_counts_it(net, alone):
    coordinator = alone()
    session = coordinator.session(net.make_peer())
    session.handle(Hello("alice", coordinator.contract.to_json()))
    session.handle(Ready(2))
    session.handle(net.code(0, 0))
    session.handle(net.gradient(0, 0))
    session.close()
    member = coordinator.members[0]
    assert member.meter.counts["output_gradient"] == 2 * 4 * 4
    assert member.peer is None
    assert coordinator._run._steps._server.applied == [(0, 0)]


def test_the_optimizer_works_after_the_gradient_has_left(net, alone):
    coordinator = alone()
    server, settled = coordinator._run._steps._server, []
    server.settle = lambda: settled.append(len(server.applied))
    session = coordinator.session(net.make_peer())
    session.handle(Hello("alice", coordinator.contract.to_json()))
    session.handle(Ready(2))
    session.handle(net.code(0, 0))
    session.handle(net.gradient(0, 0))
    assert settled == []
    session.replied()
    assert settled == [1]


def test_a_client_gets_no_long_message_through_before_its_turn(net, alone):
    coordinator, allowed = alone(), []
    session = coordinator.session(net.make_peer(allow_sides=lambda: allowed.append(1)))
    session.handle(Hello("alice", coordinator.contract.to_json()))
    assert not allowed
    session.handle(Ready(2))
    assert allowed
