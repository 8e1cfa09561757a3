"""A reader that knows a run's frames returns what one that sees them first returns."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    Reader,
    frame_bytes,
    from_frames,
    to_frames,
    wire_reading,
)
from lightsplit.protocol.wire import PART_BYTES


def outcome(read, frame):
    """Return the frames of what was read, or the code of the refusal."""
    try:
        return to_frames(read(frame))
    except ProtocolError as error:
        return error.code


@st.composite
def messages(draw):
    client, step = (
        draw(st.integers(0, 1)),
        draw(st.sampled_from((0, 1, 2, 3, 127, 128, 2**63 - 1, 2**64 - 1))),
    )
    values = torch.full((2, draw(st.integers(1, 2))), float(draw(st.integers(0, 3))))
    side = draw(
        st.sampled_from(((), (torch.arange(2),), (torch.ones(2), torch.ones(3))))
    )
    return draw(
        st.sampled_from(
            (
                CodeMessage(client, step, Code(values, side)),
                CodeMessage(client, step, Code(values), torch.arange(2)),
                CodeMessage(client, step, Code(values), is_training=False),
                OutputMessage(client, step, Code(values, side)),
                OutputGradient(client, step, values, side),
                CodeGradient(client, step, values, side=side),
                CodeGradient(client, step, values, 0.5),
            )
        )
    )


@st.composite
def altered(draw, message):
    """Return the frame of a message, in one case of two with another byte in it."""
    frame = bytearray(to_frames(message)[0])
    if draw(st.booleans()):
        frame[draw(st.integers(0, len(frame) - 1))] = draw(st.integers(0, 255))
    return bytes(frame)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(messages().flatmap(altered), min_size=2, max_size=12))
def test_familiar_frames_are_read_as_all_others(frames):
    reader = Reader()
    for frame in frames:
        assert outcome(reader.feed, frame) == outcome(
            lambda one: from_frames([one]), frame
        )


@pytest.fixture
def parses(monkeypatch):
    """Return a list that grows with every frame that is parsed."""
    seen = []
    split = wire_reading.split

    def counted(*arguments):
        seen.append(1)
        return split(*arguments)

    monkeypatch.setattr(wire_reading, "split", counted)
    return seen


def test_the_last_step_of_all_is_read_as_all_others():
    reader = Reader()
    last = OutputGradient(0, 2**64 - 1, torch.ones(2, 2))
    first = OutputGradient(0, 0, torch.ones(2, 2))
    for message in (last, last, first, last):
        assert reader.feed(to_frames(message)[0]).step == message.step


def test_losses_that_are_equal_and_written_differently_stay_themselves():
    for loss in (0.0, -0.0):
        message = CodeGradient(0, 1, torch.ones(2, 2), loss)
        read = from_frames(to_frames(message))
        assert math.copysign(1, read.loss) == math.copysign(1, loss)


@pytest.mark.parametrize("stride", [0, 1], ids=["evaluation", "training"])
def test_only_the_first_frames_of_a_run_are_parsed(parses, stride):
    reader = Reader()
    for number in range(20):
        message = OutputMessage(1, 7 + stride * number, Code(torch.rand(4, 3)))
        read = reader.feed(to_frames(message)[0])
        assert torch.equal(read.output.values, message.output.values)
        assert (read.client, read.step) == (message.client, message.step)
    assert len(parses) == 1


def test_numbers_in_a_familiar_frame_are_checked():
    reader = Reader()
    reader.feed(to_frames(OutputGradient(0, 1, torch.ones(2, 2)))[0])
    with pytest.raises(ProtocolError, match="not finite"):
        reader.feed(to_frames(OutputGradient(0, 2, torch.full((2, 2), torch.nan)))[0])


def test_new_rules_are_applied_to_familiar_frames(make_contract):
    reader = Reader()
    reader.feed(to_frames(OutputGradient(0, 1, torch.ones(2, 2)))[0])
    reader.limits = wire_reading.Limits(step_bytes=8)
    with pytest.raises(ProtocolError, match="at most 8 may come"):
        reader.feed(to_frames(OutputGradient(0, 2, torch.ones(2, 2)))[0])


@pytest.mark.parametrize("rows", [3, PART_BYTES // 8], ids=["one-frame", "parts"])
def test_a_read_message_knows_how_long_its_frames_were(rows):
    message = CodeMessage(0, 1, Code(torch.zeros(rows, 4)))
    counted = frame_bytes(message)
    frames = to_frames(message)
    assert counted == sum(map(len, frames)) == frame_bytes(message)
    assert frame_bytes(from_frames(frames)) == counted
