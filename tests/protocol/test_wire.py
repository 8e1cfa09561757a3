"""One object writes, reads and measures the four messages."""

import gc
import weakref

import pytest
import torch

from lightsplit.codecs import CODECS, OUTPUT_CODECS, Code, Layout
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.formats import FORMATS, STEP_KINDS, WireFormats
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputMessage,
    Recall,
    StepId,
    Wire,
)

ROWS, AT = 5, StepId(client=2, step=7)


def make_wire(form="fp32", codec="lightsplit-f", output="raw"):
    made = CODECS.create(codec, shape=(8, 3, 3), ratio=1 if codec == "raw" else 4)
    back = OUTPUT_CODECS.create(output, shape=(40,), classes=3)
    return Wire(made, back, WireFormats(form, seed=3))


def send(wire):
    """Return what is sent in one step, and the messages that carry it."""
    code = wire.codec.encoder(torch.randn(ROWS, *wire.codec.shape))
    output = Code(torch.randn(ROWS, 40))
    output_gradient = torch.randn(ROWS, 3) @ torch.randn(3, 40) / ROWS
    code_gradient = torch.randn_like(code.values) / ROWS
    sent = (code.values, output.values, output_gradient, code_gradient)
    messages = (
        wire.write_code(AT, code),
        wire.write_output(AT, output),
        wire.write_output_gradient(AT, output_gradient),
        wire.write_code_gradient(AT, code_gradient),
    )
    return sent, messages


def read(wire, message, sent):
    """Return the numbers that the receiver of a message reads."""
    if isinstance(message, CodeMessage):
        return wire.read_code(message).values
    if isinstance(message, OutputMessage):
        return wire.read_output(message).values
    if isinstance(message, CodeGradient):
        return wire.read_code_gradient(message, sent)
    return wire.read_output_gradient(message, sent)


def written(message):
    for name in ("code", "output", "written"):
        if hasattr(message, name):
            return getattr(message, name)
    raise AssertionError(message)


every_wire = pytest.mark.parametrize("form", FORMATS.names())
every_codec = pytest.mark.parametrize("codec", ["raw", "lightsplit-f", "topk"])
every_output = pytest.mark.parametrize("output", ["raw", "low-rank"])


@every_wire
@every_codec
@every_output
def test_messages_are_laid_out_as_predicted(form, codec, output):
    wire = make_wire(form, codec, output)
    _, messages = send(wire)
    assert [message.kind for message in messages] == list(STEP_KINDS)
    for message in messages:
        layout = wire.layout(message.kind, ROWS)
        assert layout == Layout.of(written(message))
        assert message.payload_bytes == layout.code_bytes


@every_wire
@every_codec
@every_output
def test_the_other_end_reads_nearly_the_sent_values(form, codec, output):
    wire, other = make_wire(form, codec, output), make_wire(form, codec, output)
    for sent, message in zip(*send(wire), strict=True):
        got = read(other, message, sent)
        assert got.shape == sent.shape
        assert (got - sent).norm() <= 0.4 * sent.norm()


@every_wire
@every_output
def test_an_observer_reads_the_same_rows_as_the_receiver(form, output):
    wire = make_wire(form, output=output)
    for sent, message in zip(*send(wire), strict=True):
        assert torch.equal(wire.rows(message), read(wire, message, sent))


def test_an_observer_of_side_information_sees_activations():
    wire = make_wire(codec="topk")
    _, (message, *_) = send(wire)
    assert wire.rows(message).shape == (ROWS, 8, 3, 3)


def test_a_message_belongs_to_no_graph():
    wire = make_wire()
    values = torch.randn(ROWS, wire.codec.code_size, requires_grad=True)
    assert not wire.write_code(AT, Code(values * 2)).code.values.requires_grad


def test_messages_name_their_step_and_carry_labels_and_loss():
    wire, labels = make_wire(), torch.arange(ROWS)
    code = Code(torch.randn(ROWS, wire.codec.code_size))
    asked = wire.write_code(AT._replace(is_training=False), code, labels)
    assert (asked.client, asked.step, asked.is_training) == (2, 7, False)
    assert asked.labels is labels
    reply = wire.write_code_gradient(AT, code.values, 0.5)
    assert (reply.client, reply.step, reply.loss) == (2, 7, 0.5)


def test_another_layout_is_refused_with_both():
    wire = make_wire("int8")
    code = Code(torch.zeros(ROWS, wire.codec.code_size))
    with pytest.raises(CodecError, match=r"a code of int8 .*, got float32 \(5, 18\)$"):
        wire.read_code(CodeMessage(0, 0, code))
    with pytest.raises(ProtocolError, match=r"an output of int8 \(5, 40\) with"):
        wire.read_output(OutputMessage(0, 0, Code(torch.zeros(ROWS, 40))))
    with pytest.raises(ProtocolError, match=r"a code gradient of int8 \(5, 18\) with"):
        wire.read_code_gradient(CodeGradient(0, 0, code.values), code.values)


def test_without_an_output_codec_outputs_pass_and_have_no_layout():
    wire = Wire(make_wire().codec)
    output = Code(torch.randn(ROWS, 3))
    assert torch.equal(wire.rows(wire.write_output(AT, output)), output.values)
    for kind in ("output", "output_gradient"):
        with pytest.raises(ConfigError, match=f"layout of the {kind} needs an output"):
            wire.layout(kind, ROWS)


def test_int4_is_refused_where_the_length_of_a_row_is_unknown():
    wire = Wire(make_wire().codec, formats=WireFormats("int4"))
    wire.check_readable("code")
    with pytest.raises(ConfigError, match="int4 packs the rows of the output"):
        wire.check_readable("code", "output")


def test_a_wire_that_is_dropped_lets_its_codec_go():
    wire = make_wire("int8")
    send(wire)
    codec = weakref.ref(wire.codec)
    del wire
    gc.collect()
    assert codec() is None


def test_released_codes_have_rows_and_their_names_have_none():
    wire = Wire(CODECS.create("raw", shape=(3,)))
    values = torch.randn(2, 3)
    message = wire.write_release(StepId(0, 0), 4, Code(values))
    assert torch.equal(wire.rows(message), values)
    with pytest.raises(ProtocolError, match="a recall holds no row"):
        wire.rows(Recall(0, 0, torch.tensor([4])))
