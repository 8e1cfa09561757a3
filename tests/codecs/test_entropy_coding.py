import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs.entropy_coding import TOTAL, EntropyCoder, whole_frequencies
from lightsplit.codecs.prior import FactorisedPrior
from lightsplit.errors import CodecError, ConfigError, MissingExtraError

REACH = 3
SHARES = torch.tensor([[0.01, 0.04, 0.1, 0.7, 0.1, 0.04, 0.01], [1.0] * 7])
TABLE = whole_frequencies(SHARES)


def drawn(samples, count, seed=0):
    """Return numbers (samples, 2, count) that are as frequent as the table says."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.multinomial(
        TABLE.float(), samples * count, replacement=True, generator=generator
    )
    return (rows - REACH).view(2, samples, count).transpose(0, 1).float()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.integers(-REACH, REACH), min_size=8, max_size=8),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_written_is_read_again(rows):
    symbols = torch.tensor(rows).float().view(-1, 2, 4)
    coder = EntropyCoder(TABLE, 4)
    words, written = coder.write(symbols)
    assert torch.equal(coder.read(words, written), symbols)
    assert int(words.max()) <= coder.most_words


def test_frequent_numbers_take_the_bits_that_their_frequency_says():
    coder, symbols = EntropyCoder(TABLE, 200), drawn(40, 200)
    _, written = coder.write(symbols)
    shares = TABLE.double() / TOTAL
    picked = torch.stack(
        [shares[c][(symbols[:, c] + REACH).long()] for c in (0, 1)], dim=1
    )
    ideal = float(-picked.log2().sum()) / 8
    assert ideal <= len(written) <= ideal + 40 * 8  # two words a sample at the end
    assert len(written) < symbols.numel() * math.log2(7) / 8


def test_the_least_likely_sample_takes_no_more_than_the_most():
    table = whole_frequencies(torch.eye(9)[:1])  # all others are as rare as can be
    coder = EntropyCoder(table, 500)
    for level in (-3.0, 4.0):
        words, written = coder.write(torch.full((1, 1, 500), level))
        assert coder.most_words - 4 <= int(words) <= coder.most_words
        assert torch.equal(coder.read(words, written), torch.full((1, 1, 500), level))


def test_samples_do_not_depend_on_each_other():
    coder, symbols = EntropyCoder(TABLE, 30), drawn(5, 30)
    words, written = coder.write(symbols)
    alone, own = coder.write(symbols[2:3])
    start = 4 * int(words[:2].sum())
    assert int(alone) == int(words[2])
    assert torch.equal(own, written[start : start + len(own)])


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ([0, 2], [1] * 8),
        ([1, 2], [1] * 8),
        ([-1, 3], [1] * 8),
        ([1, 1], [255] * 8),
        ([2, 30], [7] * 128),  # bytes after the end
    ],
)
def test_bytes_that_no_coder_wrote_are_refused(words, written):
    words = torch.tensor(words, dtype=torch.int16)
    with pytest.raises(CodecError, match=r"stream|entropy-coded"):
        EntropyCoder(TABLE, 4).read(words, torch.tensor(written, dtype=torch.uint8))


def test_a_flipped_bit_is_refused_or_gives_levels_in_reach():
    coder, symbols = EntropyCoder(TABLE, 30), drawn(1, 30)
    words, written = coder.write(symbols)
    for place in range(len(written)):
        wrong = written.clone()
        wrong[place] ^= 16
        try:
            read = coder.read(words, wrong)
        except CodecError:
            continue
        assert float(read.abs().max()) <= REACH


@pytest.mark.parametrize(
    "table",
    [
        torch.full((2, 4), TOTAL // 4, dtype=torch.int32),  # an even number of levels
        torch.tensor([[0, TOTAL, 0]], dtype=torch.int32),
        torch.tensor([[1, 1, 1]], dtype=torch.int32),
        torch.tensor([[TOTAL / 4, TOTAL / 2, TOTAL / 4]]),
    ],
)
def test_frequencies_that_cannot_be_used_are_refused(table):
    with pytest.raises(CodecError, match="add up to 65536"):
        EntropyCoder(table, 4)


def test_samples_that_are_too_long_to_tell_are_refused():
    with pytest.raises(ConfigError, match="at most 32,767 can be sent"):
        EntropyCoder(TABLE, 40_000)


def test_a_coder_can_be_copied():
    symbols = drawn(3, 10)
    ours = EntropyCoder(TABLE, 10)
    words, written = copy.deepcopy(ours).write(symbols)
    assert torch.equal(ours.read(words, written), symbols)


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "constriction", None)
    with pytest.raises(MissingExtraError, match=r"lightsplit\[entropy\]"):
        EntropyCoder(TABLE, 4)


def test_a_prior_is_a_density_and_its_bits_are_its_logarithm():
    prior = FactorisedPrior(2)
    few, shares = prior.shares(3), prior.shares(200)
    torch.testing.assert_close(few[:, 1:-1], shares[:, 198:203])
    torch.testing.assert_close(few[:, 0], shares[:, :198].sum(dim=1))
    torch.testing.assert_close(few.sum(dim=1), torch.ones(2))
    torch.testing.assert_close(shares.sum(dim=1), torch.ones(2), atol=1e-3, rtol=0)
    code = torch.tensor([[[3.0, -1.0], [0.0, 7.0]]])
    expected = -(
        shares[0][[203, 199]].log2().sum() + shares[1][[200, 207]].log2().sum()
    )
    torch.testing.assert_close(prior.bits(code), expected[None])


def test_a_prior_learns_how_often_each_number_comes():
    prior, symbols = FactorisedPrior(2), drawn(50, 40)
    optimizer = torch.optim.Adam(prior.parameters(), lr=0.05)
    first = float(prior.bits(symbols).detach().mean())
    for _ in range(200):
        optimizer.zero_grad()
        prior.bits(symbols).mean().backward()
        optimizer.step()
    learned = float(prior.bits(symbols).detach().mean())
    shares = TABLE.double() / TOTAL
    entropy = 40 * float(-(shares * shares.log2()).sum())
    assert learned < first
    assert learned == pytest.approx(entropy, rel=0.08)
