"""The server's view: rows in the order they were sent, and no image anywhere."""

from dataclasses import fields

import pytest
import torch

from lightsplit.attacks import Exchange, ServerView, readable
from lightsplit.codecs import CODECS, Code
from lightsplit.errors import AuditError
from lightsplit.formats import AsReceived, WireFormats
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    StepId,
    Wire,
)


def prediction(code, step=0):
    request = CodeMessage(0, step, Code(code), is_training=False)
    return Exchange(request, OutputMessage(0, step, Code(torch.zeros(len(code), 3))))


def training_step(code, step=0):
    rows = len(code)
    return [
        Exchange(
            CodeMessage(0, step, Code(code)),
            OutputMessage(0, step, Code(torch.full((rows, 3), 2.0))),
        ),
        Exchange(
            OutputGradient(0, step, torch.full((rows, 3), 3.0)),
            CodeGradient(0, step, torch.full_like(code, 4.0)),
        ),
    ]


def view_of(*exchanges, codec="raw", **options):
    made = CODECS.create(codec, shape=(4,), **options)
    return ServerView(contract=None, wire=Wire(made), exchanges=exchanges)


def test_codes_are_those_sent_outside_training_in_order():
    first, second = torch.rand(2, 4), torch.rand(3, 4)
    noise = training_step(torch.rand(2, 4))
    view = view_of(prediction(first), *noise, prediction(second))
    assert torch.equal(view.codes, torch.cat([first, second]))


@pytest.mark.parametrize(
    ("kind", "value"), [("output", 2.0), ("output_gradient", 3.0), ("code_gradient", 4)]
)
def test_each_of_the_four_messages_of_training_can_be_asked_for(kind, value):
    steps = training_step(torch.rand(2, 4)) + training_step(torch.rand(5, 4), step=1)
    view = view_of(prediction(torch.rand(1, 4)), *steps)
    rows = view.training_messages(kind)
    assert len(rows) == 7
    assert bool((rows == value).all())


def test_the_code_of_training_is_apart_from_that_of_prediction():
    code = torch.rand(2, 4)
    view = view_of(prediction(torch.rand(1, 4)), *training_step(code))
    assert torch.equal(view.training_messages("code"), code)


def test_vanilla_steps_have_two_of_the_four_messages():
    code = torch.rand(2, 4)
    request = CodeMessage(0, 0, Code(code), labels=torch.tensor([0, 1]))
    view = view_of(Exchange(request, CodeGradient(0, 0, code, 0.5)))
    assert view.recorded_kinds == ("code", "code_gradient")
    with pytest.raises(AuditError, match="no output_gradient"):
        view.training_messages("output_gradient")


def test_a_message_that_was_not_recorded_is_refused_by_name():
    view = view_of(*training_step(torch.rand(2, 4)))
    with pytest.raises(AuditError, match="no code that was sent outside training"):
        _ = view.codes
    with pytest.raises(AuditError, match="unknown message 'image'; known: code"):
        view.training_messages("image")


def test_a_code_with_side_information_is_read_as_the_server_reads_it():
    codec = CODECS.create("topk", shape=(4,), ratio=2)
    activation = torch.tensor([[0.1, 3.0, -2.0, 0.2]])
    kept = readable(codec, codec.encoder(activation))
    assert torch.equal(kept, torch.tensor([[0.0, 3.0, -2.0, 0.0]]))


@pytest.mark.parametrize("name", ["c3", "splitfc"])
def test_a_code_of_a_batch_is_taken_apart_by_the_servers_own_decoder(name):
    codec = CODECS.create(name, shape=(4, 3, 3))
    code = codec.encoder(torch.rand(6, 4, 3, 3))
    assert torch.equal(readable(codec, code), codec.decoder(code))


def test_the_gradient_of_a_code_of_a_batch_has_no_row_per_image():
    view = view_of(*training_step(torch.rand(2, 4)), codec="c3")
    with pytest.raises(AuditError, match="no row of a code gradient"):
        view.training_messages("code_gradient")


def test_a_view_has_fields_for_the_servers_knowledge_only():
    names = {field.name for field in fields(ServerView)}
    server = {"exchanges", "weights", "contract", "wire"}
    assert names == server | {"attacked_steps"}  # which of its codes, no more


@pytest.mark.parametrize("form", ["fp16", "bf16", "int8", "int4"])
def test_messages_are_shown_as_the_server_reads_them(form):
    formats = WireFormats(form, seed=3)
    code = torch.randn(5, 4)
    wire = Wire(CODECS.create("raw", shape=(4,)), formats=formats)
    request = wire.write_code(StepId(0, 7, is_training=False), Code(code))
    reply = OutputMessage(0, 7, Code(torch.zeros(5, 3)))
    view = ServerView(None, wire, (Exchange(request, reply),))
    read = AsReceived(formats)(code)
    assert torch.equal(view.codes, read)
    assert not torch.equal(view.codes, code)


@pytest.mark.parametrize("form", ["fp32", "fp16", "int8"])
def test_gradients_are_shown_as_they_were_before_they_were_summed(form):
    formats = WireFormats(form, seed=3)
    gradient = torch.randn(5, 4) / 5
    wire = Wire(CODECS.create("raw", shape=(4,)), formats=formats)
    request = OutputGradient(0, 7, torch.zeros(5, 3))
    reply = wire.write_code_gradient(StepId(0, 7), gradient.clone())
    view = ServerView(None, wire, (Exchange(request, reply),))
    shown = view.training_messages("code_gradient")
    torch.testing.assert_close(shown, gradient, atol=0.01, rtol=0.02)
