"""A member that misbehaves in its turn is refused, each time with its own code.

Carol is an impostor first: one wrong message in her turn, on a connection of its own
each time. Then the true Carol comes, and the run is what it would have been.
"""

import contextlib
import threading

import pytest
import torch
from lab.lines import Caller
from lab.misdeeds import assert_each_is_refused, open_step
from lab.processes import wait_until
from lab.runs import (
    Network,
    assert_same_state,
    assert_same_weights,
    build_job,
    copied,
    reference,
)

from lightsplit.codecs import Code
from lightsplit.errors import ExchangeError, RemoteError, TransportError
from lightsplit.protocol import CodeMessage
from lightsplit.protocol.control import Ready, TurnDone


def test_each_wrong_message_has_its_refusal_and_no_effect(tmp_path):
    with Network(tmp_path) as network:
        for name in ("alice", "bob"):
            network.join(name)
        wait_for_turn_of(network, 2)
        before = copied(network.server.side.state())
        assert_each_is_refused(
            network,
            lambda: assert_same_state(network.server.side.state(), before),
        )
        network.join("carol")
        got = network.finish()
    assert_same_weights(got, reference())


def wait_for_turn_of(network, index):
    """Bring a run to the turn of client ``index``, who has only been seen so far."""
    name = network.names[index]
    with Caller(network, name) as caller:
        caller.enter()
    wait_until(lambda: network.coordinator.members[index].peer is None, "a free line")
    assert network.coordinator.at_work() == {index}


def test_a_batch_that_the_modules_cannot_compute_is_refused(tmp_path):
    settings = {"topology": "vanilla", "codec": "raw"}
    with Network(tmp_path, **settings) as network:
        for name in ("alice", "bob"):
            network.join(name)
        with Caller(network, "carol") as caller:
            caller.enter()
            values = torch.zeros(4, *network.contract.activation_shape)
            labels = torch.full((4,), 99)
            with pytest.raises(RemoteError, match=r"step 0 cannot be computed: .*99"):
                caller.call(CodeMessage(2, 0, Code(values), labels))
        network.join("carol")
        got = network.finish()
    assert_same_weights(got, reference(**settings))


def test_the_newer_of_two_connections_wins_and_the_older_hears_of_it(tmp_path):
    with Network(tmp_path) as network, Caller(network, "carol") as older:
        for name in ("alice", "bob"):
            network.join(name)
        older.enter()
        open_step(older)
        with Caller(network, "carol") as newer:
            assert newer.enter().turn == 2
            with pytest.raises(TransportError):
                older.call(older.gradient(0))
            open_step(newer)
        network.join("carol")
        got = network.finish()
    assert_same_weights(got, reference())


def test_an_older_connection_that_waits_is_told_that_it_was_replaced(tmp_path):
    with Network(tmp_path) as network, Caller(network, "carol") as older:
        older.hello()
        told = []

        def wait():
            try:
                older.call(Ready(2))
            except ExchangeError as error:
                told.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_until(lambda: network.coordinator.members[2].batches, "Ready")
        network.join_all()
        waiting.join(240)
        got = network.finish()
    assert "a newer connection under the name 'carol' took over" in str(told[0])
    assert isinstance(told[0], RemoteError)  # so it does not come back
    assert_same_weights(got, reference())


def test_a_client_out_of_turn_cannot_mix_its_graph_with_anothers(tmp_path):
    """Bob speaks while a step of Alice's is open: she is answered as if alone."""
    alone = build_job().trainer.server
    with Network(tmp_path) as network, contextlib.ExitStack() as stack:
        alice, bob, _ = callers = [
            stack.enter_context(Caller(network, name)) for name in network.names
        ]
        for caller in callers:
            caller.index = caller.hello().index
        for caller in (bob, callers[2]):
            caller.post(Ready(2))
        alice.call(Ready(2))
        output = alice.call(alice.code(0))
        bob.post(bob.gradient(0))
        bob.post(bob.code(0))
        gradient = alice.call(alice.gradient(0))
        assert_same_tensors(
            output.output.values, alone.handle(alice.code(0)).output.values
        )
        assert_same_tensors(gradient.gradient, alone.handle(alice.gradient(0)).gradient)
        alice.post(TurnDone(0, b"sealed"))
        assert bob.take().turn == 1
        with pytest.raises(RemoteError, match="expected code of step 0, got output_gr"):
            bob.take()
        assert_same_state(network.server.side.state(), alone.side.state())


def assert_same_tensors(got, expected):
    assert torch.equal(got, expected)
