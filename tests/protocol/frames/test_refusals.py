"""The receiver raises the error whose code was sent."""

import pytest

from lightsplit.errors import (
    CodecError,
    ConfigError,
    ContractError,
    ExchangeError,
    ProtocolError,
    RemoteError,
    SealError,
    TransportError,
)
from lightsplit.protocol import REFUSALS, Refusal
from lightsplit.protocol.frames import error_of, refusal_of


@pytest.mark.parametrize("code", REFUSALS)
def test_every_code_becomes_its_error_and_keeps_its_text(code):
    error = error_of(Refusal(code, "the reason"))
    assert type(error) is REFUSALS[code]
    assert (error.code, str(error)) == (code, "the reason")


@pytest.mark.parametrize(
    "error", [ExchangeError, ProtocolError, ContractError, SealError, TransportError]
)
def test_the_code_of_every_error_is_known(error):
    assert error("").code in REFUSALS


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProtocolError("x", code="not-finite"), "not-finite"),
        (ContractError("x"), "contract-mismatch"),
        (CodecError("x"), "wrong-shape"),
        (ConfigError("x"), "refused"),
    ],
)
def test_an_error_becomes_a_refusal_with_its_code(error, code):
    assert refusal_of(error) == Refusal(code, "x")


def test_an_unknown_code_is_the_peers_error_and_is_named():
    error = error_of(Refusal("tired", "no"))
    assert type(error) is RemoteError
    assert str(error) == "tired: no"


def test_a_long_reason_is_cut():
    assert len(refusal_of(ProtocolError("x" * 100_000)).text) == 8192
