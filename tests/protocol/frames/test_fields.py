"""Fields are found where protobuf writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.errors import ProtocolError
from lightsplit.protocol._pb import lightsplit_pb2 as pb
from lightsplit.protocol.frames.fields import field_head, read_varint, split, varint

BIG = frozenset({pb.TurnDone.SIDE_FIELD_NUMBER})


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_varint_comes_back_and_its_end_is_known(number, before, after):
    written = varint(number)
    body = memoryview(before + written + after)
    end = len(before) + len(written)
    assert read_varint(body, len(before)) == (number, end)


@pytest.mark.parametrize("body", [b"", b"\x80", b"\xff" * 9, b"\xff" * 11])
def test_a_varint_that_does_not_end_is_refused(body):
    with pytest.raises(ProtocolError, match="does not end"):
        read_varint(memoryview(body), 0)


@given(st.integers(0, 2**64 - 1), st.none() | st.floats(), st.binary(min_size=1))
def test_small_fields_and_big_ones_are_told_apart(turn, loss, side):
    small = pb.TurnDone(turn=turn, loss=loss).SerializeToString()
    body = memoryview(pb.TurnDone(turn=turn, loss=loss, side=side).SerializeToString())
    assert body == small + field_head(min(BIG), len(side)) + side
    assert split(body, BIG) == (small, [(min(BIG), side)])


def test_a_number_under_the_tag_of_a_big_field_is_a_small_one():
    body = memoryview(varint(min(BIG) << 3) + varint(7))
    assert split(body, BIG) == (bytes(body), [])
