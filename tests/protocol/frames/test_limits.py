"""Messages outside the contract are refused before a tensor is made."""

import re

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
    Recall,
    Release,
    Share,
    Total,
    from_frames,
    to_frames,
)
from lightsplit.protocol.frames.limits import Claim


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
    codec = CODECS.create(name, shape=(4, 4, 4))
    message = CodeMessage(0, 0, codec.pack(codec.encoder(torch.rand(8, 4, 4, 4))))
    expectation = Expectation(make_contract(), codec.packed_layout)
    assert refusal(message, expectation) is None
    wrong = CodeMessage(0, 0, Code(message.code.values[..., None], message.code.side))
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


def token_expectation(make_contract, **terms):
    contract = make_contract(
        rows="token",
        most_tokens=10,
        companions=("rows uint8 (batch, tokens)",),
        activation_shape=(5,),
        **terms,
    )
    return Expectation(contract, CODECS.create("raw", shape=(5,)).layout)


def token_claim(rows, grid):
    return Claim(TensorSpec((rows, 5)), companions=(TensorSpec(grid, torch.uint8),))


def test_sequences_of_any_length_up_to_the_contracts_are_legal(make_contract):
    expectation = token_expectation(make_contract, batch_size=4)
    expectation.check("code", token_claim(23, (4, 10)))
    expectation.check("code", token_claim(3, (2, 6)))
    expectation.check("code_gradient", Claim(TensorSpec((40, 5))))
    assert expectation.most_bytes["code"] > 4 * 10 * 5 * 4


@pytest.mark.parametrize(
    ("rows", "grid", "text"),
    [
        (3, (4, 11), "sequences of up to 10 tokens; got rows of (4, 11)"),
        (3, (2**20, 4), "sequences of up to 10 tokens; got rows of (1048576, 4)"),
        (9, (2, 4), "expected a batch of 1 to 8, one is float32 (1, 5)"),
        (3, (3,), "sequences of up to 10 tokens; got rows of (3,)"),
    ],
)
def test_longer_sequences_are_refused_before_memory_is_taken(
    make_contract, rows, grid, text
):
    expectation = token_expectation(make_contract, batch_size=4)
    with pytest.raises(ProtocolError, match=re.escape(text)) as caught:
        expectation.check("code", token_claim(rows, grid))
    assert caught.value.code == "wrong-shape"


def test_companions_that_the_contract_does_not_name_are_refused(make_contract):
    layout = CODECS.create("raw", shape=(5,)).layout
    claim = Claim(layout(2).values, companions=(TensorSpec((2,)),))
    with pytest.raises(ProtocolError, match=r"no companions; got float32 \(2,\)"):
        Expectation(make_contract(), layout).check("code", claim)


def release(rows, **options):
    return Release(0, 0, 4, Code(torch.zeros(rows, 5)), **options)


def recall(count, dtype=torch.int32, **options):
    return Recall(0, 0, torch.zeros(count, dtype=dtype), **options)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (release(8), None),
        (release(9), "wrong-shape"),
        (release(9, is_training=False), None),
        (recall(8), None),
        (recall(9), "wrong-shape"),
        (recall(9, is_training=False), None),
        (recall(3, torch.int64), "wrong-shape"),
    ],
)
def test_codes_that_are_sent_once(message, code, make_contract):
    contract = make_contract(release="once")
    assert refusal(message, Expectation(contract, raw, evaluation_batch=16)) == code


def share(nonces=1, length=16, dtype=torch.int64, count=5, kind=Share):
    samples = {"samples": 8} if kind is Total else {}
    return kind(
        0,
        0,
        numbers=torch.zeros(count, dtype=dtype),
        nonces=torch.zeros(nonces, length, dtype=torch.uint8),
        **samples,
    )


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (share(), None),
        (share(nonces=0), "wrong-shape"),
        (share(nonces=0, kind=Total), "wrong-shape"),
        (share(nonces=2), "wrong-shape"),
        (share(length=12), "wrong-shape"),
        (share(dtype=torch.int32), "wrong-shape"),
        (share(count=4), "wrong-shape"),
        (share(count=6), "wrong-shape"),
        (share(count=6, kind=Total), "wrong-shape"),
        (share(nonces=2, kind=Total), None),
        (share(nonces=9, kind=Total), "wrong-shape"),
    ],
)
def test_parts_of_a_sum_have_one_form(message, code, make_contract):
    contract = make_contract(
        rounds="parallel", heads="shared", clients=8, share_numbers=5
    )
    assert refusal(message, Expectation(contract, raw)) == code


def test_a_share_takes_no_more_memory_than_the_contract_says(make_contract):
    contract = make_contract(rounds="parallel", share_numbers=5)
    share_bytes = Expectation(contract, raw).most_bytes["share"]
    assert share_bytes <= 5 * 8 + 16 + 4096


@pytest.mark.parametrize("terms", [{}, {"rounds": "parallel", "heads": "private"}])
def test_a_run_without_sums_takes_no_part_of_one(terms, make_contract):
    with pytest.raises(ProtocolError, match="owners add nothing up"):
        from_frames(to_frames(share()), Expectation(make_contract(**terms), raw))


@pytest.mark.parametrize("message", [release(2), recall(2)])
def test_a_run_with_codes_in_every_step_has_no_other(message, make_contract):
    with pytest.raises(ProtocolError, match="this run sends a code in every step"):
        from_frames(to_frames(message), Expectation(make_contract(), raw))
