"""Roundings that are right on average, and streams that both ends draw alike."""

import pytest
import torch
from scipy import stats

from lightsplit.formats import Stream

DRAWS = 20000
SIGMAS = 4.5
BITS = [41164, 42478, 54574, 62035, 55785]


def many(row):
    """The same row, drawn for again and again."""
    return torch.tensor([row]).repeat(DRAWS, 1)


@pytest.mark.parametrize("rounding", ["stochastic", "dither"])
@pytest.mark.parametrize("name", ["int8", "int4"])
def test_the_values_read_are_right_on_average(pass_through, name, rounding):
    values = many([0.013, -0.5, 0.77, 1.0, -0.999, 0.31])
    read = pass_through(name, values, rounding)
    deviation = read.double().std(0) / DRAWS**0.5
    off = (read.double().mean(0) - values[0].double()).abs()
    assert (off <= SIGMAS * deviation + 1e-6).all()
    assert (deviation > 0).any()


def test_bf16_is_right_on_average_if_rounded_stochastically(pass_through):
    values = many([1.001, -3.3, 1e-20, 0.7])
    read = pass_through("bf16", values, "stochastic").double()
    deviation = read.std(0) / DRAWS**0.5
    off = (read.mean(0) - values[0].double()).abs()
    assert (off <= SIGMAS * deviation + 1e-30).all()
    nearest = pass_through("bf16", values).double().mean(0)
    assert ((nearest - values[0].double()).abs() > off).any()


def test_nearest_is_not_right_on_average(pass_through):
    values = many([0.55 / 7, 1.0])
    assert pass_through("int4", values)[:, 0].mean() == pytest.approx(1 / 7, rel=0.02)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_the_error_of_a_dither_is_uniform_and_has_nothing_to_do_with_the_number(
    pass_through, name
):
    limit = {"int8": 127, "int4": 7}[name]
    values = many([1.0, 0.3, 0.61, -0.2])
    scale = torch.tensor(1 / limit).item()
    errors = (pass_through(name, values, "dither") - values).double() / scale
    for column in errors.T[1:]:
        widest = column.abs().max().item()
        assert widest <= 0.51
        uniform = stats.uniform(-widest, 2 * widest)
        assert stats.kstest(column.numpy(), uniform.cdf).pvalue > 1e-4


def test_dither_errs_no_more_than_nearest_and_stochastic_more(pass_through):
    torch.manual_seed(0)
    values = torch.randn(400, 64)
    error = {
        rounding: (pass_through("int4", values, rounding) - values).square().mean()
        for rounding in ("nearest", "stochastic", "dither")
    }
    assert error["dither"] < 1.1 * error["nearest"]
    assert 1.5 * error["nearest"] < error["stochastic"] < 2.5 * error["nearest"]


def test_both_ends_draw_the_same_numbers_and_other_messages_draw_others():
    shape = torch.Size((5, 7))
    mine, theirs = Stream(1, 0, 3, "code"), Stream(1, 0, 3, "code")
    assert torch.equal(mine.uniform(shape), theirs.uniform(shape))
    assert torch.equal(mine.uniform(shape), theirs.uniform(shape))
    others = [
        (2, 0, 3, "code"),
        (1, 1, 3, "code"),
        (1, 0, 4, "code"),
        (1, 0, 3, "output"),
    ]
    first = Stream(1, 0, 3, "code").uniform(shape)
    assert not any(torch.equal(Stream(*n).uniform(shape), first) for n in others)


def test_draws_lie_strictly_between_zero_and_one():
    drawn = Stream(0, "x").uniform(torch.Size((200000,)))
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.003)


def test_the_stream_is_the_same_on_every_machine():
    """Philox's raw bits, which NumPy never changes."""
    assert Stream(0, 1, 2, "code").bits(torch.Size((5,))).tolist() == BITS
