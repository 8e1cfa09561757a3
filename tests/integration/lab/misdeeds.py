"""What a member may try in its turn, each with the refusal that it gets."""

import dataclasses

import pytest
import torch

from lab.lines import Caller
from lightsplit.codecs import Code
from lightsplit.errors import RemoteError
from lightsplit.protocol import OutputGradient
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
        lambda _c: b"\xfa\x01\x00",  # field 31, which no message has
        "unknown-message",
        "250",
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


def assert_each_is_refused(network, after_each=lambda: None):
    """Let Carol try everything in her turn, on a connection of its own each time."""
    for what, (first, wrong, code, text) in WRONG.items():
        got = refusal_of(network, first, wrong)
        assert got[0] == code, (what, got)
        assert text in got[1], (what, got)
        after_each()


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
