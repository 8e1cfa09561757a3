"""The bytes counted in one process equal those of the serialiser."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    OutputGradient,
    OutputMessage,
    to_frames,
)
from lightsplit.transports import ByteMeter

VALUES = torch.randn(8, 5)
PLACES = torch.zeros(8, 5, dtype=torch.int16)
LARGE = Code(torch.zeros(8, 100_000))
EXCHANGES = {
    "forward": (CodeMessage(1, 200, Code(VALUES)), OutputMessage(1, 200, Code(VALUES))),
    "backward": (OutputGradient(1, 200, VALUES), CodeGradient(1, 200, VALUES)),
    "vanilla": (
        CodeMessage(0, 0, Code(VALUES, (PLACES,)), torch.arange(8)),
        CodeGradient(0, 0, VALUES, 0.5),
    ),
    "evaluation": (
        CodeMessage(0, 0, Code(VALUES), is_training=False),
        OutputMessage(0, 0, Code(VALUES)),
    ),
    "parts": (CodeMessage(0, 0, LARGE), OutputMessage(0, 0, LARGE)),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_the_total_is_the_length_of_all_frames(name):
    request, reply = EXCHANGES[name]
    meter = ByteMeter()
    meter(request, lambda _: reply)
    written = sum(len(one) for m in (request, reply) for one in to_frames(m))
    assert meter.by_kind()["total"] == written


def test_framing_is_the_frame_without_payload_and_labels():
    request, reply = EXCHANGES["vanilla"]
    meter = ByteMeter()
    meter(request, lambda _: reply)
    counts = meter.by_kind()
    assert counts["code"] == 8 * 5 * (4 + 2)
    assert counts["labels"] == 8 * 8
    assert counts["code_gradient"] == 8 * 5 * 4 + 8
    assert 0 < counts["framing"] < 100
