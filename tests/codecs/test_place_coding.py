import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs.place_coding import (
    MOST_ENUMERATED,
    choice_bits,
    pack_places,
    packed_bytes,
    place_coding,
    unpack_places,
)
from lightsplit.errors import CodecError


def draw(samples, size, kept):
    return torch.rand(samples, size).topk(kept).indices.sort().values


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 90), st.data())
def test_places_come_back_and_take_the_bytes_that_are_counted(samples, size, data):
    kept = data.draw(st.integers(1, size))
    places = draw(samples, size, kept)
    packed = pack_places(places, size)
    assert packed.shape == (packed_bytes(samples, size, kept),)
    assert torch.equal(unpack_places(packed, samples, size, kept), places)


@pytest.mark.parametrize(
    ("size", "kept", "coding"),
    [
        (4096, 128, "enumerative"),
        (MOST_ENUMERATED, 1024, "enumerative"),
        (10_000, 2000, "bitmap"),
        (10_000, 30, "fixed"),
    ],
)
def test_long_activations_have_the_coding_that_is_shortest(size, kept, coding):
    places = draw(3, size, kept)
    assert place_coding(size, kept) == coding
    packed = pack_places(places, size)
    assert torch.equal(unpack_places(packed, 3, size, kept), places)
    bitmap, fixed = size, kept * math.ceil(math.log2(size))
    assert choice_bits(size, kept) <= min(bitmap, fixed)


def test_each_choice_has_a_number_of_its_own():
    choices = torch.combinations(torch.arange(18), 3)
    numbers = {bytes(pack_places(choice.view(1, -1), 18)) for choice in choices}
    assert len(numbers) == len(choices) == math.comb(18, 3)
    assert choice_bits(18, 3) == 10


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        ([255, 255], "one of the choices of 3 places of 18"),
        ([0, 8], "zeros after the places"),
        ([0, 0, 0], "expected 2 bytes of places"),
    ],
)
def test_bytes_that_are_no_choice_are_refused(packed, message):
    given = torch.tensor(packed, dtype=torch.uint8)
    if message.startswith("one of"):
        given[1] = 3  # the highest number of ten bits
    with pytest.raises(CodecError, match=message):
        unpack_places(given, 1, 18, 3)


@pytest.mark.parametrize(
    ("size", "kept", "message"),
    [(10_000, 2000, "2000 places in each"), (10_000, 30, "30 rising places below")],
)
def test_bits_with_another_number_of_places_are_refused(size, kept, message):
    packed = torch.zeros(packed_bytes(1, size, kept), dtype=torch.uint8)
    with pytest.raises(CodecError, match=message):
        unpack_places(packed, 1, size, kept)
