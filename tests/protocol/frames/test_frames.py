"""Laws of the serialiser: nothing is lost, every byte is known, the schema is kept."""

import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Grant,
    OutputGradient,
    OutputMessage,
    Ready,
    frame_bytes,
    from_frames,
    to_frames,
)
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames import PART_BYTES
from lightsplit.protocol.frames.schema import KINDS
from lightsplit.protocol.frames.tensors import DTYPES

SHAPES = st.lists(st.integers(1, 6), min_size=0, max_size=5).map(tuple)


def tensors(shapes=SHAPES):
    return st.builds(
        lambda shape, dtype: (torch.randn(shape) * 50).abs().to(dtype),
        shapes,
        st.sampled_from(DTYPES),
    )


def messages():
    number, step = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
    code = st.builds(Code, tensors(), st.lists(tensors(), max_size=3).map(tuple))
    loss = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    return st.one_of(
        st.builds(
            CodeMessage, number, step, code, st.none() | tensors(), st.booleans()
        ),
        st.builds(OutputMessage, number, step, code),
        st.builds(OutputGradient, number, step, tensors()),
        st.builds(CodeGradient, number, step, tensors(), loss),
        st.builds(Grant, step, step, step, step, step, st.booleans(), st.binary()),
    )


def is_same(mine, theirs):
    """Say whether two messages are equal, tensors to the bit and in dtype."""
    if isinstance(mine, torch.Tensor):
        same_kind = mine.dtype == theirs.dtype and mine.shape == theirs.shape
        return same_kind and bool(torch.equal(mine, theirs))
    if isinstance(mine, tuple):
        pairs = zip(mine, theirs, strict=True)
        return len(mine) == len(theirs) and all(is_same(a, b) for a, b in pairs)
    if hasattr(mine, "__dataclass_fields__"):
        names = [field.name for field in fields(mine)]
        return type(mine) is type(theirs) and all(
            is_same(getattr(mine, name), getattr(theirs, name)) for name in names
        )
    return type(mine) is type(theirs) and mine == theirs


def test_a_message_of_every_kind_reads_back_the_same(message):
    assert is_same(from_frames(to_frames(message)), message)


def test_every_kind_of_the_schema_has_its_example(every_message):
    assert {type(m) for m in every_message} == {k.message for k in KINDS.values()}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_small_fields_of_schema_and_dataclass_are_the_same(kind):
    big = {kind.name, "gradient", "labels", "side", "companions", "numbers", "nonces"}
    big |= {kind.side_name}
    big |= {"code"} if kind.name == "release" else set()
    names = {field.name for field in fields(kind.message)} - big
    assert set(kind.scalars) == names


@settings(max_examples=100, deadline=None)
@given(messages())
def test_any_message_comes_back_and_its_length_was_known(message):
    frames = to_frames(message)
    assert is_same(from_frames(frames), message)
    assert frame_bytes(message) == sum(map(len, frames))


def test_frames_equal_those_of_protobuf_itself(message):
    (frame,) = to_frames(message)
    assert pb.Frame.FromString(frame).SerializeToString(deterministic=True) == frame


@pytest.mark.parametrize("off", [-70, -66, -65, -64, -63, -20, -1, 0, 1, 63, 64, 65])
@pytest.mark.parametrize("parts", [1, 2])
def test_sizes_around_the_end_of_a_part_lose_nothing(off, parts):
    message = Grant(1, 2, 3, side=bytes(range(256)) * (parts * PART_BYTES // 256))
    message = Grant(1, 2, 3, side=(message.side + bytes(64))[: len(message.side) + off])
    frames = to_frames(message)
    assert max(map(len, frames)) <= PART_BYTES
    assert frame_bytes(message) == sum(map(len, frames))
    assert from_frames(frames) == message


def test_a_tensor_of_many_parts_comes_back_bit_for_bit():
    message = CodeMessage(0, 1, Code(torch.randn(3, 700_001)))
    frames = to_frames(message)
    assert len(frames) == 5
    assert frame_bytes(message) == sum(map(len, frames))
    assert is_same(from_frames(frames), message)


@pytest.mark.parametrize("rows", [3, PART_BYTES // 8], ids=["one-frame", "parts"])
def test_a_message_is_counted_the_same_at_both_ends(rows):
    message = CodeMessage(0, 1, Code(torch.zeros(rows, 4)))
    frames = to_frames(message)
    count = sum(map(len, frames))
    assert frame_bytes(message) == frame_bytes(from_frames(frames)) == count


def test_counting_a_message_leaves_no_trace_in_it(message):
    before = dict(vars(message))
    frame_bytes(message)
    to_frames(message)
    assert vars(message).keys() == before.keys()


@pytest.mark.parametrize("step", [0, 1, 127, 128, 2**63 - 1, 2**63, 2**64 - 1])
def test_any_step_that_the_schema_can_hold_comes_back(step):
    message = OutputGradient(0, step, torch.ones(2, 2))
    assert from_frames(to_frames(message)).step == step


@pytest.mark.parametrize("loss", [0.0, -0.0])
def test_a_loss_of_zero_keeps_its_sign(loss):
    message = CodeGradient(0, 1, torch.ones(2, 2), loss)
    read = from_frames(to_frames(message))
    assert math.copysign(1, read.loss) == math.copysign(1, loss)


@pytest.mark.slow
def test_a_side_of_a_hundred_mebibytes_takes_time_in_proportion():
    message = Grant(1, 2, 3, side=bytes(100 * 2**20))
    frames = to_frames(message)
    assert frame_bytes(message) == sum(map(len, frames))
    assert from_frames(frames) == message


def test_views_and_tensors_of_a_graph_are_sent_as_plain_numbers():
    tensor = torch.randn(4, 6, requires_grad=True)
    got = from_frames(to_frames(OutputGradient(0, 0, tensor.T[::2])))
    assert torch.equal(got.gradient, tensor.detach().T[::2])
    assert not got.gradient.requires_grad


def test_a_received_tensor_can_be_written_to_and_is_aligned_as_torch_has_it():
    (frame,) = to_frames(OutputGradient(0, 0, torch.ones(3)))
    before = bytes(frame)
    gradient = from_frames([frame]).gradient
    gradient.zero_()
    assert frame == before
    assert gradient.data_ptr() % 64 == 0


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (OutputGradient(-1, 0, torch.ones(1)), "malformed"),
        (OutputGradient(2**32, 0, torch.ones(1)), "malformed"),
        (OutputGradient(0, 2**64, torch.ones(1)), "malformed"),
        (Ready(1.5), "malformed"),
        (OutputGradient(0, 0, torch.ones(0, 3)), "wrong-shape"),
        (OutputGradient(0, 0, torch.ones([1] * 9)), "wrong-shape"),
        (OutputGradient(0, 0, torch.ones(2, dtype=torch.complex64)), "wrong-shape"),
        ("hello", "unknown-message"),
    ],
)
def test_a_message_that_could_not_be_read_is_not_written(message, code):
    with pytest.raises(ProtocolError) as caught:
        to_frames(message)
    assert caught.value.code == code


def test_the_generated_code_is_that_of_the_schema():
    script = Path(__file__).parents[3] / "proto/generate.py"
    subprocess.run([sys.executable, script, "--check"], check=True)
