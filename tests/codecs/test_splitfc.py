import struct

import numpy as np
import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.codecs.splitfc import keep_probabilities
from lightsplit.codecs.splitfc_columns import Columns, read_columns, write_columns
from lightsplit.codecs.splitfc_levels import (
    Levels,
    error_bound,
    share_out,
    solve_levels,
)
from lightsplit.errors import CodecError, ConfigError
from lightsplit.seeding import scope


def make(size=80, **options):
    return CODECS.create("splitfc", shape=(size,), **options)


def test_levels_solve_the_published_equation():
    u = np.array([0.0, 1e-6, 0.5, 6.7, 6.75, 6.8, 100.0, 1e6])
    levels = solve_levels(u)
    np.testing.assert_allclose((levels - 1) ** 3, u * levels, rtol=1e-9, atol=1e-12)


def test_levels_grow_with_the_range_and_keep_to_the_bits():
    ranges, means = np.array([8.0, 2.0, 1.0, 0.5]), np.linspace(0, 1, 6)
    levels = share_out(ranges, means, batch=32, bits=400)
    assert list(levels.own) == sorted(levels.own, reverse=True)
    spent = 32 * np.log2(levels.own).sum() + 6 * np.log2(levels.means)
    assert 330 < spent <= 400


def test_no_other_levels_of_that_cost_have_a_lower_bound():
    ranges, means = np.array([8.0, 2.0, 1.0]), np.zeros(0)
    best = share_out(ranges, means, batch=16, bits=16 * 9.0)

    def bound(own):
        return error_bound(ranges, means, means, Levels(np.array(own), 2), 16)

    least = bound(best.own)
    spent = np.log2(best.own).sum()
    for own in np.ndindex(40, 40, 40):
        other = np.array(own) + 2
        if np.log2(other).sum() <= spent - 0.3:  # whole levels leave a little over
            assert bound(other) > least


def test_errors_stay_within_the_bound_and_fall_with_the_budget():
    rows = torch.randn(32, 80) * torch.linspace(0.1, 3, 80)
    errors = []
    for bits in (0.5, 1.0, 2.0, 4.0, 8.0):
        codec = make(bits_per_value=bits)
        codec.encoder.eval()
        code = codec.encoder(rows)
        errors.append(float((code.values - rows).square().sum()))
        assert errors[-1] <= bound_of(rows.double().numpy(), code.side[0].numpy())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3 * float(rows.square().sum())


def bound_of(rows, written):
    """Return the published bound for the levels in the bytes, and for rounded ends."""
    batch, *grids, means = struct.unpack_from("<I4fI", written)
    bits = np.unpackbits(written[24:], bitorder="little")
    columns = rows.shape[1]
    is_wide = bits[columns : 2 * columns].astype(bool)
    count = int(is_wide.sum())
    sizes = bits[2 * columns : 2 * columns + 8 * count]
    own = np.packbits(sizes, bitorder="little").astype(int) + 1
    ranges = np.ptp(rows, axis=0)
    centres = rows[:, ~is_wide].mean(axis=0)
    levels = Levels(own, means)
    bound = error_bound(ranges[is_wide], centres, ranges[~is_wide], levels, batch)
    end_step = (grids[1] - grids[0]) / 255  # ends of ranges are rounded to a byte each
    return (bound**0.5 + end_step * (batch * count) ** 0.5) ** 2


def test_bytes_are_the_budget_or_the_least_that_a_batch_takes():
    codec = CODECS.create("splitfc", shape=(4096,), bits_per_value=0.2)
    assert codec.packed_layout(64).code_bytes == int(64 * 4096 * 0.2 / 8)
    assert codec.packed_layout(1).code_bytes == 24 + 3 * 4096 // 8
    assert codec.gradient_layout(codec.layout(64).values).code_bytes == 64 * 4096 // 16


def test_columns_that_differ_more_are_kept_more_often():
    rows = torch.randn(400, 50) * torch.linspace(0.1, 1, 50)
    odds = keep_probabilities(rows, 5.0)
    assert float(odds.sum()) == pytest.approx(10, abs=1e-3)
    assert odds[-5:].mean() > 4 * odds[:5].mean()
    narrow = keep_probabilities(rows, 1.02)
    assert float(narrow.max()) == 1
    assert float(narrow.sum()) == pytest.approx(50 / 1.02, abs=1e-3)


def test_equal_samples_are_dropped_evenly():
    odds = keep_probabilities(torch.ones(4, 3, 2, 2), 4.0)
    torch.testing.assert_close(odds, torch.full((3, 2, 2), 0.25))


def test_dropping_keeps_the_mean():
    codec = make(bits_per_value=32.0, reduction=4.0)
    rows = torch.randn(8, 80)
    total = torch.zeros_like(rows)
    for draw in range(100):
        with scope(draw, "drop"):
            total += codec.encoder(rows).values
    assert float((total / 100 - rows).norm() / rows.norm()) < 0.35


def test_dropped_columns_get_no_gradient_and_a_gradient_keeps_its_budget():
    codec = make(gradient_bits=6.0, reduction=4.0)
    rows = torch.randn(16, 80, requires_grad=True)
    with scope(1, "drop"):
        sent = codec.encoder(rows)
    arrived = Code(sent.values.detach().requires_grad_(), sent.side)
    (codec.decoder(arrived) * torch.randn(16, 80)).sum().backward()
    gradient = arrived.values.grad
    is_kept = (gradient != 0).any(dim=0)
    assert 5 < int(is_kept.sum()) < 40
    back = codec.decode_gradient(codec.encode_gradient(gradient))
    assert not bool(back[:, ~is_kept].any())
    assert float((back - gradient).norm() / gradient.norm()) < 0.05
    sent.values.backward(back)
    assert not bool(rows.grad[:, ~is_kept].any())


def test_nothing_kept_and_constant_columns_come_back():
    dropped = Columns(np.zeros((3, 9)), np.zeros(9, dtype=bool))
    assert not read_columns(write_columns(dropped, 40), 9).any()
    constant = Columns(np.full((3, 9), 2.5), np.ones(9, dtype=bool))
    assert (read_columns(write_columns(constant, 40), 9) == 2.5).all()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (slice(0, 4), 99, "bytes for"),
        (slice(4, 8), 255, "finite numbers and 2 to 256 levels"),
        (slice(20, 24), 0, "finite numbers and 2 to 256 levels"),
        (slice(24, 54), 255, "as many bits as its header tells"),
    ],
)
def test_bytes_that_are_no_columns_are_refused(place, value, message):
    codec = make(bits_per_value=2.0)
    written = codec.pack(codec.encoder(torch.randn(4, 80))).values.clone()
    written[place] = value
    with pytest.raises(CodecError, match=message):
        codec.unpack(Code(written))


def test_other_tensors_are_refused():
    for tensor in (torch.zeros(3), torch.zeros(3, dtype=torch.uint8)):
        with pytest.raises(CodecError, match="splitfc expects"):
            make().unpack(Code(tensor))


@pytest.mark.parametrize(
    "options", [{"bits_per_value": 0.0}, {"gradient_bits": 33.0}, {"reduction": 0.5}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        make(**options)
