"""Parts together are the bytes that were cut, and their length is known before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.protocol.frames.fields import read_varint
from lightsplit.protocol.frames.parts import PART_BYTES, Joiner, cut, parts_bytes


def bodies(frames):
    """Yield what follows the tag and the length of each frame."""
    for frame in map(memoryview, frames):
        yield frame[read_varint(frame, 1)[1] :]


@pytest.mark.parametrize("total", [1, PART_BYTES - 64, PART_BYTES, 3 * PART_BYTES + 7])
def test_parts_are_short_enough_and_their_length_was_known(total):
    frames = list(cut([bytes(total)], total))
    assert max(map(len, frames)) <= PART_BYTES
    assert sum(map(len, frames)) == parts_bytes(total)


@given(st.lists(st.integers(0, PART_BYTES + 99), min_size=1, max_size=4))
def test_pieces_of_any_length_are_joined_again(lengths):
    pieces = [bytes([number]) * length for number, length in enumerate(lengths)]
    total = sum(lengths)
    joiner = Joiner(lambda _data, _total: None)
    wholes = [joiner.add(body) for body in bodies(cut(pieces, total))]
    assert not any(wholes[:-1])
    assert joiner.is_empty
    assert b"".join(pieces) == (wholes[-1] if wholes else b"")


def test_the_check_sees_the_first_part_and_the_total_and_no_other():
    seen = []
    joiner = Joiner(lambda data, total: seen.append((len(data), total)))
    total = 2 * PART_BYTES
    for body in bodies(cut([bytes(total)], total)):
        joiner.add(body)
    assert seen == [(PART_BYTES - 64, total)]
