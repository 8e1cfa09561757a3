"""A reader meets anything: it returns a legal message or says why not, nothing else."""

import random
import struct
import tracemalloc

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.errors import ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Expectation,
    Grant,
    Limits,
    OutputGradient,
    Reader,
    Ready,
    TurnDone,
    from_frames,
    to_frames,
)
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames import PART_BYTES, REFUSALS
from lightsplit.protocol.frames.schema import KINDS

LONG = Grant(1, 2, 3, side=bytes(3 * PART_BYTES))


def frame(**body):
    return pb.Frame(**body).SerializeToString()


def tensor(data=bytes(4), shape=(1,), dtype=1, **more):
    return pb.Tensor(dtype=dtype, shape=shape, data=data, **more)


def gradient(one):
    return frame(output_gradient=pb.OutputGradient(gradient=one))


def part(index, total, data):
    return frame(part=pb.Part(index=index, total=total, data=data))


def refusal(*frames, **options):
    """Return the code that the last of ``frames`` is refused with."""
    reader = Reader(**options)
    *before, last = frames
    assert not any(reader.feed(one) for one in before)
    with pytest.raises(ProtocolError) as caught:
        reader.feed(last)
    assert reader._parts.is_empty
    return caught.value.code


FIRST = part(0, 100, frame(ready=pb.Ready(batches=1))[:1] + b"\x62" + bytes(8))


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([b""], "unknown-message"),
        ([b"\x00"], "unknown-message"),
        ([b"\xff" * 20], "unknown-message"),
        ([b"\x02\x00"], "unknown-message"),  # field 0
        ([b"\x3a"], "malformed"),  # no length
        ([b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"], "malformed"),
        ([b"\x3a\x05\x08"], "malformed"),  # shorter than it says
        ([b"\x3a\x01\x08"], "malformed"),  # a field without its number
        ([b"\x3a\x01\x0f"], "malformed"),  # wire type 7
        ([b"\x3a\x05\x09abcd"], "malformed"),  # eight bytes, four there
        ([b"\x3a\x04\x0dabc"], "malformed"),  # four bytes, three there
        ([b"\x3a\x02\x00\x00"], "malformed"),  # field 0
        ([b"\x2a\x03\x0a\x01\xff"], "malformed"),  # not UTF-8
        ([b"\x3a\xac\x02" + b"\x10\x00" * 150], "malformed"),  # too many fields
        ([frame(ready=pb.Ready()) * 2], "malformed"),  # two bodies
        ([bytes(PART_BYTES + 1)], "too-large"),
        ([frame(output_gradient=pb.OutputGradient(client=1))], "malformed"),
        ([gradient(tensor(data=b""))], "malformed"),
        ([gradient(tensor(data=bytes(3)))], "malformed"),
        ([gradient(tensor(data=bytes(8)))], "malformed"),
        ([gradient(tensor(dtype=0))], "malformed"),
        ([gradient(tensor(dtype=77))], "malformed"),
        ([gradient(tensor(format=1))], "malformed"),
        ([gradient(tensor(shape=[1] * 100))], "wrong-shape"),
        ([gradient(tensor(shape=[1] * 1000))], "malformed"),
        ([gradient(tensor(shape=[0, 2**32 - 1]))], "wrong-shape"),
        ([gradient(tensor(shape=[2**32 - 1] * 8))], "malformed"),
        ([frame(turn_done=pb.TurnDone(loss=float("nan")))], "not-finite"),
        (
            [frame(code=pb.CodeMessage(values=tensor(), side=[tensor()] * 17))],
            "malformed",
        ),
        ([part(0, 10, b"")], "malformed"),
        ([part(0, 0, b"x")], "out-of-order"),
        ([part(1, 0, b"x")], "out-of-order"),
        ([part(0, 50, part(0, 50, b"x" * 40))], "malformed"),
        ([part(0, 9, frame(ready=pb.Ready(batches=1)))], "malformed"),
        ([part(0, 2, b"\x70\x00")], "unknown-message"),
        ([FIRST, FIRST], "out-of-order"),
        ([FIRST, part(2, 0, b"x")], "out-of-order"),
        ([FIRST, part(0, 0, b"x")], "out-of-order"),
        ([FIRST, frame(ready=pb.Ready(batches=1))], "out-of-order"),
        ([FIRST, part(1, 0, bytes(91))], "too-large"),
    ],
)
def test_bad_frames_are_refused_with_their_code(frames, code):
    assert refusal(*frames) == code
    assert code in REFUSALS


def test_a_message_that_does_not_end_or_goes_on_is_refused():
    frames = to_frames(LONG)
    with pytest.raises(ProtocolError, match="not complete"):
        from_frames(frames[:-1])
    with pytest.raises(ProtocolError, match="after the end"):
        from_frames([*frames, frames[0]])


def test_after_an_error_a_reader_can_begin_anew():
    reader = Reader()
    first, *_ = to_frames(LONG)
    assert reader.feed(first) is None
    with pytest.raises(ProtocolError):
        reader.feed(b"")
    assert reader.feed(to_frames(Ready(3))[0]) == Ready(3)


def test_a_reader_keeps_to_limits_that_are_set_later():
    reader = Reader()
    (step,) = to_frames(OutputGradient(0, 1, torch.ones(2, 2)))
    assert reader.feed(step) is not None
    reader.limits = Limits(step_bytes=8)
    with pytest.raises(ProtocolError, match="at most 8 bytes"):
        reader.feed(step)


def test_small_parts_are_joined_too():
    whole = to_frames(TurnDone(5, b"sealed"))[0]
    pieces = [whole[:3], whole[3:4], whole[4:]]
    frames = [part(i, 0 if i else len(whole), p) for i, p in enumerate(pieces)]
    assert from_frames(frames) == TurnDone(5, b"sealed")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16]
)
def test_a_tensor_that_is_not_finite_is_refused_by_name(bad, dtype):
    values = torch.ones(3, 4, dtype=dtype)
    values[1, 2] = bad
    with pytest.raises(ProtocolError, match=r"code\.values") as caught:
        from_frames(to_frames(CodeMessage(0, 0, Code(values))))
    assert caught.value.code == "not-finite"


def test_infinities_that_cancel_are_refused_and_large_numbers_are_not():
    both = torch.tensor([float("inf"), -float("inf")])
    assert refusal(*to_frames(OutputGradient(0, 0, both))) == "not-finite"
    large = torch.full((4,), torch.finfo(torch.float32).max)
    assert torch.equal(
        from_frames(to_frames(OutputGradient(0, 0, large))).gradient, large
    )


def test_a_loss_that_is_not_finite_is_refused():
    message = CodeGradient(0, 0, torch.ones(1), float("inf"))
    assert refusal(*to_frames(message)) == "not-finite"


def test_a_huge_claim_takes_no_memory():
    grant = b"\x42" + b"\x80\x80\x80\x80\x10"  # 4 GiB, says its length
    claims = [
        part(0, 2**32 + 6, grant),
        part(0, 2**63, grant),
        grant,
        gradient(tensor(shape=[2**31])),
        b"\x0a\x80\x80\x20" + b"\x5a\x00" * (2**18),  # a code of 262,144 side tensors
    ]
    tracemalloc.start()
    for claim in claims:
        assert refusal(claim) in {"too-large", "malformed"}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_total_above_the_limit_is_refused_at_the_first_part():
    limits = Limits(side_bytes=2 * PART_BYTES)
    assert refusal(to_frames(LONG)[0], limits=limits) == "too-large"


def test_parts_keep_no_more_memory_than_the_bytes_received():
    reader = Reader()
    first, *_ = to_frames(LONG)
    tracemalloc.start()
    reader.feed(first)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1.2 * PART_BYTES


def damaged(chance, valid):
    """Return a frame that may be anything, often almost a legal one."""
    frame = bytearray(chance.choice(valid))
    match chance.randrange(6):
        case 0:
            return chance.randbytes(chance.randrange(200))
        case 1:
            return bytes(frame[: chance.randrange(len(frame))])
        case 2:
            return bytes(frame) + chance.randbytes(chance.randrange(1, 9))
        case 3:
            at = chance.randrange(len(frame))
            frame[at:at] = chance.randbytes(chance.randrange(1, 4))
        case 4:  # the right length around garbage
            body = chance.randbytes(chance.randrange(100))
            return bytes([chance.randrange(1, 16) << 3 | 2, len(body)]) + body
        case _:
            for _ in range(chance.randrange(1, 5)):
                frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
    return bytes(frame)


@pytest.mark.parametrize("is_agreed", [False, True])
def test_ten_thousand_damaged_frames_are_read_or_refused(
    is_agreed, every_message, make_contract
):
    chance = random.Random(2)  # noqa: S311  the same frames every time
    valid = [one for message in every_message for one in to_frames(message)]
    valid += [FIRST, part(1, 0, struct.pack("<q", 7))]
    legal = tuple(kind.message for kind in KINDS.values())
    layout = CODECS.create("raw", shape=(5,)).layout
    expectation = Expectation(make_contract(), layout) if is_agreed else None
    reader, codes = Reader(expectation), set()
    for _ in range(10_000):
        try:
            message = reader.feed(damaged(chance, valid))
        except ProtocolError as error:
            codes.add(error.code)
        else:
            assert message is None or isinstance(message, legal)
            if message is not None:
                to_frames(message)
    assert codes <= set(REFUSALS)
    assert {"malformed", "unknown-message", "out-of-order", "not-finite"} <= codes
