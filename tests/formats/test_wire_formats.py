"""Written codes and gradients: side tensors, layouts, and sums over rows."""

import pytest
import torch

from lightsplit.codecs import CODECS, OUTPUT_CODECS, Code, Layout, TensorSpec
from lightsplit.errors import ConfigError, FormatError
from lightsplit.formats import FORMATS, STEP_KINDS, AsReceived, Stamp, WireFormats

STAMP = Stamp("code", 2, 7)
GRADIENT = Stamp("code_gradient", 2, 7)
every_format = pytest.mark.parametrize("name", FORMATS.names())


@pytest.fixture(params=["raw", "lightsplit-f", "topk", "learned-1x1"])
def codec(request):
    ratio = 1 if request.param == "raw" else 4
    return CODECS.create(request.param, shape=(8, 3, 3), ratio=ratio)


def make_code(codec, rows=5):
    code = codec.encoder(torch.randn(rows, *codec.shape))
    return Code(code.values.detach(), code.side)


def test_nothing_is_done_in_fp32(codec):
    code = make_code(codec)
    formats = WireFormats()
    assert formats.write(STAMP, code) is code
    assert formats.read(STAMP, code, codec.layout(5)) is code
    assert formats.layout("code", codec.layout(5)) == codec.layout(5)
    gradient = torch.randn(5, 4)
    written = formats.write_gradient(GRADIENT, codec, gradient)
    assert written.values is gradient
    plain = Layout(TensorSpec((5, 4)))
    assert formats.read_gradient(GRADIENT, codec, written, plain) is gradient


@every_format
@pytest.mark.parametrize("rows", [1, 5, 64])
def test_a_written_code_is_laid_out_as_predicted(codec, name, rows):
    formats = WireFormats(name)
    written = formats.write(STAMP, make_code(codec, rows))
    formats.layout("code", codec.layout(rows)).check(written)


@every_format
def test_a_code_read_back_has_the_same_layout_and_close_values(codec, name):
    formats, code = WireFormats(name), make_code(codec)
    read = formats.read(STAMP, formats.write(STAMP, code), codec.layout(5))
    codec.layout(5).check(read)
    assert (read.values - code.values).abs().max() <= code.values.abs().max() / 13
    assert all(map(torch.equal, read.side, code.side))


def test_only_int4_needs_the_layout(codec):
    for name in ("fp16", "bf16", "int8"):
        formats, code = WireFormats(name), make_code(codec)
        written = formats.write(STAMP, code)
        told = formats.read(STAMP, written, codec.layout(5))
        found = formats.read(STAMP, written)
        assert torch.equal(told.values, found.values)
        assert all(map(torch.equal, told.side, found.side))


@every_format
def test_both_ends_read_the_same_and_another_step_draws_new_numbers(name):
    formats = WireFormats(name, "dither", seed=3)
    other = WireFormats(name, "dither", seed=3)
    code, layout = Code(torch.randn(4, 6)), Layout(TensorSpec((4, 6)))
    read = formats.read(STAMP, formats.write(STAMP, code), layout).values
    assert torch.equal(read, other.read(STAMP, other.write(STAMP, code), layout).values)
    later = STAMP._replace(step=8)
    again = formats.read(later, formats.write(later, code), layout).values
    assert torch.equal(read, again) == (name in ("fp32", "fp16", "bf16"))


def test_outside_training_numbers_are_rounded_to_the_nearest():
    dithered, nearest = WireFormats("int4", "dither"), WireFormats("int4", "nearest")
    code = Code(torch.randn(4, 6))
    stamp = STAMP._replace(is_training=False)
    first, second = dithered.write(stamp, code), nearest.write(STAMP, code)
    assert torch.equal(first.values, second.values)


@pytest.mark.parametrize("rows", [1, 3, 64])
def test_gradients_that_fp16_would_lose_travel_as_sums(rows):
    formats = WireFormats("fp16")
    gradient = torch.full((rows, 4), 4e-8 / rows)
    written = formats.write_gradient(GRADIENT, None, gradient)
    plain = Layout(TensorSpec((rows, 4)))
    read = formats.read_gradient(GRADIENT, None, written, plain)
    torch.testing.assert_close(read, gradient, rtol=0.6, atol=0)
    assert gradient[0, 0] == torch.tensor(4e-8 / rows)  # the sender's own is untouched


@every_format
def test_the_gradient_that_is_read_is_near_the_one_that_was_sent(name):
    formats, gradient = WireFormats(name), torch.randn(7, 9) * 1e-4
    written = formats.write_gradient(GRADIENT, None, gradient)
    plain = Layout(TensorSpec((7, 9)))
    formats.layout("code_gradient", plain).check(written)
    read = formats.read_gradient(GRADIENT, None, written, plain)
    assert (read - gradient).abs().max() <= gradient.abs().max() / 13


@every_format
@pytest.mark.parametrize("rows", [2, 64])
def test_the_factors_of_a_gradient_are_both_written(name, rows):
    codec = OUTPUT_CODECS.create("low-rank", shape=(40,), classes=3)
    gradient = torch.randn(rows, 3) @ torch.randn(3, 40) / rows
    formats, stamp = WireFormats(name), Stamp("output_gradient", 0, 0)
    plain = codec.gradient_layout(TensorSpec((rows, 40)))
    written = formats.write_gradient(stamp, codec, gradient)
    formats.layout(stamp.kind, plain).check(written)
    read = formats.read_gradient(stamp, codec, written, plain)
    worst = 1e-5 if name == "fp32" else 0.4
    assert (read - gradient).norm() <= worst * gradient.norm()


def test_values_that_are_not_float32_are_refused():
    with pytest.raises(FormatError, match="float64"):
        WireFormats("int8").write(STAMP, Code(torch.zeros(2, 2, dtype=torch.float64)))


def test_the_texts_say_all_that_a_peer_must_know():
    formats = WireFormats("code=int8")
    assert formats.text == (
        "code=int8,output=fp32,output_gradient=fp32,code_gradient=fp32"
    )
    again = WireFormats(formats.text, formats.rounding_text)
    assert (again.text, again.rounding_text) == (formats.text, formats.rounding_text)
    assert [again.format(kind).name for kind in STEP_KINDS] == ["int8"] + ["fp32"] * 3


@every_format
@pytest.mark.parametrize("step", [None, 7])
def test_an_attackers_model_sees_the_values_that_the_receiver_reads(codec, name, step):
    formats, code = WireFormats(name, "dither"), make_code(codec)
    stamp = STAMP._replace(step=step or 0, is_training=step is not None)
    expected = formats.read(stamp, formats.write(stamp, code), codec.layout(5)).values
    values = code.values.clone().requires_grad_()
    seen = AsReceived(formats)(values, client=2, step=step)
    assert torch.equal(seen, expected)
    weight = torch.randn_like(seen)
    (seen * weight).sum().backward()
    assert torch.equal(values.grad, weight)


def test_gradients_are_no_values_of_an_attackers_model():
    with pytest.raises(ConfigError, match="unknown kind of values 'code_gradient'"):
        AsReceived(WireFormats(), "code_gradient")
