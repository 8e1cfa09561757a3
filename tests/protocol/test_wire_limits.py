"""What a contract allows, and that all else is refused before a tensor is made."""

import pytest
import torch

from lightsplit.codecs import CODECS, Code
from lightsplit.codecs.base import Layout, TensorSpec
from lightsplit.errors import CodecError, ConfigError, ProtocolError
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Expectation,
    Limits,
    OutputGradient,
    OutputMessage,
    Ready,
    from_frames,
    to_frames,
)


def raw(size):
    return Layout(TensorSpec((size, 5)))


def code(rows, width=5, **options):
    labels = options.pop("labels", None)
    return CodeMessage(0, 0, Code(torch.zeros(rows, width)), labels, **options)


def refusal(message, expectation):
    """Return the code that a message is refused with, None if it is accepted."""
    try:
        from_frames(to_frames(message), expectation)
    except ProtocolError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (code(1), None),
        (code(8), None),
        (code(9), "wrong-shape"),
        (code(16, is_training=False), None),
        (code(17, is_training=False), "wrong-shape"),
        (code(3, width=4), "wrong-shape"),
        (CodeMessage(0, 0, Code(torch.zeros(3, 5).double())), "wrong-shape"),
        (CodeMessage(0, 0, Code(torch.zeros(3, 5), (torch.ones(1),))), "wrong-shape"),
        (code(3, labels=torch.arange(3)), "wrong-shape"),
        (OutputMessage(0, 0, Code(torch.zeros(16, 4))), None),
        (OutputMessage(0, 0, Code(torch.zeros(3, 5))), "wrong-shape"),
        (OutputGradient(0, 0, torch.zeros(8, 4)), None),
        (OutputGradient(0, 0, torch.zeros(9, 4)), "wrong-shape"),
        (OutputGradient(0, 0, torch.zeros(8, 4, 1)), "wrong-shape"),
        (CodeGradient(0, 0, torch.zeros(8, 5)), None),
        (CodeGradient(0, 0, torch.zeros(8, 5), 1.0), "malformed"),
        (code(2000), "too-large"),
        (OutputGradient(0, 0, torch.zeros(4000, 4)), "too-large"),
        (Ready(3), None),
    ],
)
def test_u_shaped(message, code, make_contract):
    expectation = Expectation(make_contract(), raw, evaluation_batch=16)
    assert refusal(message, expectation) == code


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (code(3, labels=torch.arange(3)), None),
        (code(3), "wrong-shape"),
        (code(3, labels=torch.arange(4)), "wrong-shape"),
        (code(3, labels=torch.zeros(3)), "wrong-shape"),
        (code(3, is_training=False), None),
        (CodeGradient(0, 0, torch.zeros(8, 5), 1.0), None),
        (CodeGradient(0, 0, torch.zeros(8, 5)), "malformed"),
        (OutputMessage(0, 0, Code(torch.zeros(3, 10))), None),
        (OutputMessage(0, 0, Code(torch.zeros(3, 10).half())), "wrong-shape"),
        (OutputGradient(0, 0, torch.zeros(8, 4)), "out-of-order"),
    ],
)
def test_vanilla(message, code, make_contract):
    expectation = Expectation(make_contract(topology="vanilla"), raw)
    assert refusal(message, expectation) == code


@pytest.mark.parametrize("name", CODECS.names())
def test_every_codec_meets_the_expectation_of_its_own_layout(name, make_contract):
    codec = CODECS.create(name, shape=(4, 4, 4), ratio=1.0 if name == "raw" else 2.0)
    message = CodeMessage(0, 0, codec.encoder(torch.randn(8, 4, 4, 4)))
    expectation = Expectation(make_contract(), codec.layout)
    assert refusal(message, expectation) is None
    wrong = CodeMessage(0, 0, Code(message.code.values[:, :-1], message.code.side))
    assert refusal(wrong, expectation) == "wrong-shape"


def test_a_codec_that_takes_only_even_batches_is_asked_for_those(make_contract):
    def pairs(size):
        if size % 2:
            raise CodecError("odd")
        return Layout(TensorSpec((size // 2, 5)))

    expectation = Expectation(make_contract(batch_size=4), pairs)
    assert [refusal(code(n), expectation) for n in (1, 2, 3)] == [
        None,
        None,
        "wrong-shape",
    ]
    with pytest.raises(ConfigError, match="no batch of 1 to 1"):
        Expectation(make_contract(batch_size=1), pairs)


def test_a_batch_size_below_one_is_refused(make_contract):
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        Expectation(make_contract(batch_size=0), raw)


def test_the_message_says_what_was_expected_and_what_came(make_contract):
    with pytest.raises(ProtocolError) as caught:
        from_frames(to_frames(code(3, width=4)), Expectation(make_contract(), raw))
    assert str(caught.value) == (
        "code: expected a batch of 1 to 8, one is float32 (1, 5); got float32 (3, 4)"
    )


def test_without_a_contract_the_limits_of_the_kinds_hold():
    limits = Limits(step_bytes=10, side_bytes=20, control_bytes=30)
    assert [limits.limit_bytes(kind) for kind in ("code", "grant", "hello")] == [
        10,
        20,
        30,
    ]
    with pytest.raises(ProtocolError, match="at most 10"):
        from_frames(to_frames(code(3)), limits=limits)
