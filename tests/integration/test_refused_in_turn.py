"""A member that misbehaves in its turn is refused, each time with its own code.

Carol is an impostor first: one wrong message in her turn, on a connection of its own
each time. Then the true Carol comes, and the run is what it would have been.
"""

import contextlib
import dataclasses
import threading

import pytest
import torch
from lab.lines import Caller
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
from lightsplit.protocol import CodeMessage, OutputGradient
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.control import Hello, Ready, TurnDone
from lightsplit.protocol.frames import PART_BYTES, to_frames


def with_values(message, values):
    return dataclasses.replace(message, code=Code(values))


def nan_code(caller):
    code = caller.code(0)
    code.code.values[3, 4] = float("nan")
    return code


def infinite_gradient(caller):
    gradient = caller.gradient(0)
    gradient.gradient[0, 0] = float("inf")
    return gradient


def claimed_oversize(_caller):
    """A TurnDone that says it has 4 GiB, of which a few bytes come."""
    head = b"\x4a" + b"\x80\x80\x80\x80\x10"
    return pb.Frame(part=pb.Part(total=2**32 + 6, data=head)).SerializeToString()


def oversize_step(_caller):
    return to_frames(OutputGradient(2, 0, torch.zeros(16, 4096)))[0]


def open_step(caller):
    assert caller.call(caller.code(0)).kind == "output"


WRONG = {  # what Carol says first, what then, the code of the refusal, what it names
    "another's index": (None, lambda c: c.code(0, client=0), "not-your-turn", "not 0"),
    "another's gradient": (
        open_step,
        lambda c: c.gradient(0, client=1),
        "not-your-turn",
        "carol is client 2, not 1",
    ),
    "wrong width": (
        None,
        lambda c: with_values(c.code(0), torch.zeros(16, 5)),
        "wrong-shape",
        "(16, 5)",
    ),
    "wrong dtype": (
        None,
        lambda c: with_values(c.code(0), c.code(0).code.values.double()),
        "wrong-shape",
        "float64",
    ),
    "too many samples": (None, lambda c: c.code(0, rows=17), "wrong-shape", "1 to 16"),
    "labels in the U-shape": (
        None,
        lambda c: c.code(0, labels=torch.zeros(16, dtype=torch.int64)),
        "wrong-shape",
        "no labels",
    ),
    "another batch in the gradient": (
        open_step,
        lambda c: c.gradient(0, rows=15),
        "out-of-order",
        "(15, 64)",
    ),
    "not a number": (None, nan_code, "not-finite", "code.values"),
    "infinite": (open_step, infinite_gradient, "not-finite", "gradient"),
    "a loss that is no number": (
        None,
        lambda _c: TurnDone(2, b"x", float("nan")),
        "not-finite",
        "turn_done.loss",
    ),
    "a step of the future": (None, lambda c: c.code(1), "out-of-order", "step 0"),
    "a step far away": (None, lambda c: c.code(2**60), "out-of-order", "ends with"),
    "a gradient without its code": (
        None,
        lambda c: c.gradient(0),
        "out-of-order",
        "expected code of step 0, got output_gradient of step 0",
    ),
    "the end before the beginning": (
        None,
        lambda _c: TurnDone(2, b"sealed"),
        "out-of-order",
        "has 1 steps, 0 are done",
    ),
    "the end in the middle": (
        open_step,
        lambda _c: TurnDone(2, b"sealed"),
        "out-of-order",
        "0 are done",
    ),
    "the end of another turn": (
        None,
        lambda _c: TurnDone(7, b"sealed"),
        "out-of-order",
        "end of turn 7",
    ),
    "hello again": (None, lambda _c: Hello("carol", "{}"), "out-of-order", "Hello"),
    "ready again": (None, lambda _c: Ready(2), "out-of-order", "Ready"),
    "an unknown message": (
        None,
        lambda _c: b"\x9a\x01\x00",  # field 19, which no message has
        "unknown-message",
        "154",
    ),
    "an update": (None, lambda _c: b"\x72\x00", "out-of-order", "Updated"),
    "bytes that are no message": (
        None,
        lambda _c: b"\x0a\x05\x08",
        "malformed",
        "expected 7 bytes, got 3",
    ),
    "an empty frame": (None, lambda _c: b"", "unknown-message", "byte 0"),
    "a claim of 4 GiB": (None, claimed_oversize, "too-large", "got 4294967302"),
    "a step that is too long": (None, oversize_step, "too-large", "at most"),
    "a frame that is too long": (
        None,
        lambda _c: bytes([0x4A]) + bytes(PART_BYTES),
        "too-large",
        "at most",
    ),
}


def refusal_of(network, first, wrong):
    """Return what Carol is told in her turn."""
    with Caller(network, "carol") as caller:
        caller.enter()
        if first is not None:
            first(caller)
        message = wrong(caller)
        if isinstance(message, bytes):
            reply = caller.send_frame(message)
            return reply.code, reply.text
        with pytest.raises(RemoteError) as caught:
            caller.call(message)
        return caught.value.code, str(caught.value)


def test_each_wrong_message_has_its_refusal_and_no_effect(tmp_path):
    with Network(tmp_path) as network:
        for name in ("alice", "bob"):
            network.join(name)
        wait_for_turn_of(network, 2)
        before = copied(network.server.side.state())
        for what, (first, wrong, code, text) in WRONG.items():
            got = refusal_of(network, first, wrong)
            assert got[0] == code, (what, got)
            assert text in got[1], (what, got)
            assert_same_state(network.server.side.state(), before)
        network.join("carol")
        got = network.finish()
    assert_same_weights(got, reference())


def wait_for_turn_of(network, index):
    """Bring a run to the turn of client ``index``, who has only been seen so far."""
    name = network.names[index]
    with Caller(network, name) as caller:
        caller.enter()
    wait_until(lambda: network.coordinator.members[index].peer is None, "a free line")
    assert network.coordinator.current_assignment().client == index


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
        waiting.join(60)
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
