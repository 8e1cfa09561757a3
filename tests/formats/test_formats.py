"""The contract of every format: shapes, bytes, bounds, refusals."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lightsplit.codecs import TensorSpec
from lightsplit.errors import FormatError, ProtocolError
from lightsplit.formats import FORMATS, ROUNDINGS

FORMAT_NAMES = ("bf16", "fp16", "fp32", "int4", "int8")
LEVELS = {"int8": 127, "int4": 7}
RELATIVE = {"fp16": 2.0**-11, "bf16": 2.0**-8}
lossy = pytest.mark.parametrize("name", ["bf16", "fp16", "int4", "int8"])
whole_numbers = pytest.mark.parametrize("name", ["int4", "int8"])
every_rounding = pytest.mark.parametrize("rounding", ROUNDINGS.names())
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


def numbers(largest=2.0**100):
    """Tensors of one to four rows of one to seven numbers."""
    number = st.floats(-largest, largest, width=32)
    rows = st.integers(1, 7).flatmap(
        lambda n: st.lists(
            st.lists(number, min_size=n, max_size=n), min_size=1, max_size=4
        )
    )
    return rows.map(lambda lists: torch.tensor(lists, dtype=torch.float32))


def steps_of(name, values):
    """The distance between two numbers that a row can have, by its definition."""
    peaks = values.flatten(1).abs().amax(1, keepdim=True)
    return peaks.double() / LEVELS[name] * (1 + 2.0**-7) + 1e-40


def test_the_formats_are_these():
    assert tuple(FORMATS.names()) == FORMAT_NAMES


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize(
    "shape", [(1, 1), (2, 5), (64, 128), (3, 4, 5, 5), (7, 1), (4,)]
)
def test_predicted_bytes_are_written_bytes(write, layout_bytes, name, shape):
    values = torch.randn(shape)
    written = write(name, values)
    specs = FORMATS.create(name).layout(TensorSpec(shape))
    assert all(spec.fits(one) for spec, one in zip(specs, written, strict=True))
    assert sum(one.nbytes for one in written) == layout_bytes(name, shape)
    assert FORMATS.create(name).tensors == len(written)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fp32", 512), ("fp16", 256), ("bf16", 256), ("int8", 130), ("int4", 66)],
)
def test_a_row_of_128_takes_its_bits_and_a_scale_of_two_bytes(
    layout_bytes, name, expected
):
    assert layout_bytes(name, (1, 128)) == expected


@pytest.mark.parametrize("width", [1, 2, 3, 8, 9])
def test_odd_rows_of_int4_end_with_half_a_byte(layout_bytes, width):
    assert layout_bytes("int4", (3, width)) == 3 * (math.ceil(width / 2) + 2)


def test_fp32_is_the_very_tensor(write, pass_through):
    values = torch.randn(3, 4)
    (written,) = write("fp32", values)
    assert written is values
    assert pass_through("fp32", values) is values


@lossy
@every_rounding
def test_the_values_read_have_the_shape_of_those_written(pass_through, name, rounding):
    values = torch.randn(3, 5, 3)
    assert pass_through(name, values, rounding).shape == values.shape


@settings(max_examples=60, deadline=None)
@given(values=numbers())
@whole_numbers
@every_rounding
def test_an_error_is_half_a_step_at_most_and_stochastic_a_whole_one(
    pass_through, name, rounding, values
):
    error = (pass_through(name, values, rounding) - values).double().abs().flatten(1)
    bound = 1.0 if rounding == "stochastic" else 0.5
    assert (error <= bound * steps_of(name, values) * (1 + 1e-5)).all()


@settings(max_examples=60, deadline=None)
@given(values=numbers(2.0**15))
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_a_float_is_off_by_half_a_unit_in_the_last_place(pass_through, name, values):
    error = (pass_through(name, values) - values).abs()
    tiny = 2.0**-25 if name == "fp16" else 2.0**-134
    assert (error <= values.abs() * RELATIVE[name] + tiny).all()


@whole_numbers
@every_rounding
@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30, 3e37])
def test_the_size_of_a_row_does_not_matter(pass_through, name, rounding, size):
    values = torch.linspace(-1, 1, 15).repeat(2, 1) * torch.tensor([[size], [1.0]])
    read = pass_through(name, values, rounding)
    error = (read - values).abs().amax(1) / values.abs().amax(1)
    assert error.max() <= (1 if rounding == "stochastic" else 0.5) / LEVELS[name] * 1.01


@whole_numbers
@every_rounding
def test_rows_of_zeros_stay_zero(pass_through, name, rounding):
    values = torch.zeros(3, 5)
    values[1] = torch.arange(5.0)
    read = pass_through(name, values, rounding)
    assert not read[0].any()
    assert not read[2].any()
    assert read[1].any()


@whole_numbers
def test_a_constant_row_keeps_its_sign_and_its_size(pass_through, name):
    values = torch.tensor([[-3.0] * 5, [7.0] * 5])
    read = pass_through(name, values)
    assert (read - values).abs().max() <= 7 / LEVELS[name]
    assert (read[0] == read[0, 0]).all()


@whole_numbers
def test_whole_multiples_of_a_scale_come_back_exactly(pass_through, name):
    values = torch.arange(-LEVELS[name], LEVELS[name] + 1.0).unsqueeze(0) * 0.25
    assert torch.equal(pass_through(name, values), values)


@whole_numbers
@pytest.mark.parametrize("rounding", ["stochastic", "dither"])
def test_no_number_is_clipped_whatever_is_drawn(pass_through, name, rounding):
    values = torch.tensor([1.0, -1.0]).repeat(20000, 1)
    errors = pass_through(name, values, rounding) - values
    assert errors.abs().max() <= 1 / LEVELS[name] * 1.01
    assert (errors.mean(0).abs() < 0.05 / LEVELS[name]).all()


@lossy
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@every_rounding
def test_a_number_that_is_not_finite_is_refused_by_name(write, name, bad, rounding):
    values = torch.zeros(3, 4)
    values[1, 2] = bad
    with pytest.raises(FormatError, match=f"{name} cannot write a number that is not"):
        write(name, values, rounding)


def test_numbers_beyond_a_format_are_refused_with_its_largest(write, pass_through):
    with pytest.raises(FormatError, match="fp16 holds numbers up to 65504, got 70000"):
        write("fp16", torch.tensor([[7e4]]))
    with pytest.raises(FormatError, match="int8 holds numbers up to"):
        write("int8", torch.tensor([[3e38]]))
    pass_through("fp16", torch.full((3000, 3), 6e4))  # finite, but not their sum


@lossy
def test_other_numbers_than_float32_are_refused(write, name):
    with pytest.raises(FormatError, match=f"{name} writes float32, got torch.float64"):
        write(name, torch.zeros(2, 2, dtype=torch.float64))


@whole_numbers
@pytest.mark.parametrize("scale", [3e38, -3e38, math.nan, math.inf])
def test_a_received_scale_that_leads_beyond_float32_is_refused(
    write, make_rounding, name, scale
):
    numbers, _ = write(name, torch.ones(2, 4))
    scales = torch.tensor([1.0, scale], dtype=torch.bfloat16)
    with pytest.raises(ProtocolError, match=name) as refusal:
        FORMATS.create(name).read((numbers, scales), (2, 4), make_rounding())
    assert refusal.value.code == "not-finite"


@settings(max_examples=50, deadline=None)
@given(data=st.binary(min_size=12, max_size=12), scale=floats)
@every_rounding
def test_any_int4_bytes_read_as_finite_numbers_or_are_refused(
    make_rounding, rounding, data, scale
):
    packed = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(4, 3)
    scales = torch.full((4,), scale).to(torch.bfloat16)
    try:
        read = FORMATS.create("int4").read(
            (packed, scales), (4, 5), make_rounding(rounding)
        )
    except ProtocolError:
        return
    assert read.isfinite().all()


def test_int4_lies_two_to_a_byte_the_first_in_the_lower_half(write):
    packed, scales = write("int4", torch.tensor([[7.0, -7.0, 1.0]]))
    assert packed.tolist() == [[(7 + 8) | (-7 + 8) << 4, 1 + 8]]
    assert scales.tolist() == [1.0]


@pytest.mark.parametrize(
    ("name", "rounding", "kind", "error"),
    [
        ("bf16", "nearest", "relu", 0.0017),
        ("int8", "nearest", "relu", 0.007),
        ("int4", "nearest", "relu", 0.13),
        ("int4", "stochastic", "relu", 0.18),
        ("int4", "nearest", "normal", 0.134),
        ("int4", "dither", "normal", 0.134),
        ("int4", "stochastic", "normal", 0.189),
    ],
)
def test_rounding_loses_as_much_as_it_should(pass_through, name, rounding, kind, error):
    """Relative errors of rows of 512 values, as measured apart from this code."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(256, 512, generator=generator)
    values = values.relu() if kind == "relu" else values
    lost = (pass_through(name, values, rounding) - values).norm() / values.norm()
    assert float(lost) == pytest.approx(error, rel=0.08)
