import dataclasses

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.protocol import (
    STEP_KINDS,
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    code_bytes,
    detached,
)
from lightsplit.protocol.messages import LOSS_BYTES

VALUES = torch.rand(5, 3, requires_grad=True)
CODE = Code(VALUES, (torch.zeros(5, 3, dtype=torch.int16), torch.ones(2)))
LABELS = torch.arange(5)


def test_a_code_costs_its_values_and_its_side_information():
    assert code_bytes(CODE) == 5 * 3 * 4 + 5 * 3 * 2 + 2 * 4
    assert CodeMessage(0, 0, CODE).payload_bytes == code_bytes(CODE)
    assert OutputMessage(0, 0, CODE).payload_bytes == code_bytes(CODE)


def test_labels_are_counted_by_themselves():
    message = CodeMessage(0, 0, CODE, LABELS)
    assert message.label_bytes == 5 * 8
    assert message.payload_bytes == CodeMessage(0, 0, CODE).payload_bytes
    assert CodeMessage(0, 0, CODE).label_bytes == 0


def test_a_gradient_costs_its_values_and_the_loss_where_there_is_one():
    assert OutputGradient(0, 0, VALUES).payload_bytes == VALUES.nbytes
    assert CodeGradient(0, 0, VALUES).payload_bytes == VALUES.nbytes
    assert CodeGradient(0, 0, VALUES, 0.5).payload_bytes == VALUES.nbytes + LOSS_BYTES


def test_the_four_messages_have_the_four_kinds():
    messages = (CodeMessage, OutputMessage, OutputGradient, CodeGradient)
    assert tuple(message.kind for message in messages) == STEP_KINDS


def test_a_message_cannot_be_changed_on_the_way():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CodeMessage(0, 0, CODE).step = 1


def test_a_detached_code_has_no_graph_and_the_same_memory():
    code = detached(Code(VALUES * 1, CODE.side))
    assert not code.values.requires_grad
    assert all(
        a.data_ptr() == b.data_ptr() for a, b in zip(code.side, CODE.side, strict=True)
    )


@pytest.mark.parametrize("name", CODECS.names())
def test_a_real_code_has_the_bytes_that_its_codec_announced(name):
    codec = CODECS.create(name, shape=(4, 3, 3))
    code = codec.encoder(torch.rand(6, 4, 3, 3))
    layout, sent = codec.packed_layout(6), code_bytes(codec.pack(code))
    assert sent <= layout.code_bytes
    assert layout.is_exact == (name != "franken")
    assert not layout.is_exact or sent == layout.code_bytes
    gradient_bytes = codec.layout(6).gradient_bytes
    assert CodeGradient(0, 0, code.values).payload_bytes == gradient_bytes
