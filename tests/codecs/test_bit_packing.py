import pytest
import torch

from lightsplit.codecs.bit_packing import pack, packed_bytes, packed_samples, unpack
from lightsplit.errors import CodecError

every_size = pytest.mark.parametrize("samples", [1, 2, 3, 7, 8, 9, 63, 64])
every_count = pytest.mark.parametrize("count", [1, 3, 5, 8, 12, 16, 33])
every_width = pytest.mark.parametrize("width", [1, 2, 3, 8])


@every_size
@every_count
@every_width
def test_numbers_are_unpacked_exactly_from_the_bytes_announced(samples, count, width):
    whole = torch.randint(2**width, (samples, count))
    packed = pack(whole, width)
    assert packed.dtype == torch.uint8
    assert packed.shape == (packed_bytes(samples, count * width),)
    assert torch.equal(unpack(packed, count, width), whole)
    assert packed_samples(packed, count * width) == samples


@every_size
@every_count
def test_a_batch_takes_its_bits_and_less_than_nine_more(samples, count):
    spare = 8 * packed_bytes(samples, count) - samples * count
    assert 0 <= spare <= 8
    assert spare == 0 or count % 8


def test_the_lowest_bit_of_the_first_number_comes_first():
    assert pack(torch.tensor([[1, 2, 3, 0]]), width=2).tolist() == [0b00_11_10_01]


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (torch.zeros(2, dtype=torch.uint8), "end mark"),
        (torch.tensor([1, 0], dtype=torch.uint8), "end mark"),
        (torch.tensor([0b1000], dtype=torch.uint8), "samples of 5 bits"),
        (torch.tensor([1], dtype=torch.uint8), "samples of 5 bits"),
        (torch.zeros(2), "uint8"),
        (torch.zeros(2, 2, dtype=torch.uint8), "uint8"),
    ],
)
def test_bytes_that_hold_no_whole_samples_are_refused(packed, reason):
    with pytest.raises(CodecError, match=reason):
        unpack(packed, 5, 1)


def test_bytes_of_whole_samples_need_no_end_mark():
    with pytest.raises(CodecError, match="samples of 16 bits"):
        unpack(torch.zeros(3, dtype=torch.uint8), 16, 1)
    assert packed_samples(torch.zeros(4, dtype=torch.uint8), 16) == 2
