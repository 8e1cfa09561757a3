"""One message of every kind."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.protocol import (
    CodeGradient,
    CodeMessage,
    Contract,
    EncryptedCode,
    EncryptedOutput,
    Finished,
    Grant,
    Heard,
    Hello,
    Noted,
    OutputGradient,
    OutputMessage,
    Ready,
    Recall,
    Refusal,
    Release,
    Share,
    Total,
    TurnDone,
    Update,
    Updated,
    Welcome,
)


def _every_message():
    values = torch.randn(3, 5)
    places = torch.arange(15, dtype=torch.int16).view(3, 5)
    return [
        CodeMessage(2, 7, Code(values)),
        CodeMessage(0, 0, Code(values, (places,)), torch.arange(3)),
        CodeMessage(2, 7, Code(values), is_training=False),
        CodeMessage(2, 7, Code(values), companions=(places.to(torch.uint8), places)),
        OutputMessage(1, 300, Code(values)),
        OutputGradient(1, 2**40, values),
        CodeGradient(1, 3, values),
        CodeGradient(1, 3, values, 0.0),
        Release(2, 7, 300, Code(values, (places,))),
        Release(2, 7, 0, Code(values), is_training=False),
        Recall(2, 7, torch.arange(4, dtype=torch.int32)),
        Noted(2, 7),
        EncryptedCode(2, 7, b"unreadable"),
        EncryptedOutput(2, 7, b"unreadable"),
        Share(2, 7, torch.arange(4), torch.ones(1, 16, dtype=torch.uint8)),
        Total(2, 7, 24, -torch.arange(4), torch.ones(3, 16, dtype=torch.uint8)),
        Hello("ward-3", '{"model":"tinycnn"}', "predict"),
        Welcome(2, "run", 4, b"sealed"),
        Ready(12),
        Grant(3, 4, 5, 1, 2, True, b"sealed", 6, 7, "release", 9, True, 8),
        Grant(0, 0, 0),
        TurnDone(3, b"sealed", 0.5, (0.0, 1.5)),
        TurnDone(3),
        Finished("patience", 9, b"sealed"),
        Heard(),
        Update("apply", 7, 5e-4, 1e-3),
        Updated(7, 5, 2),
        Refusal("busy", "später"),
    ]


@pytest.fixture
def every_message():
    return _every_message()


@pytest.fixture(params=_every_message(), ids=lambda message: type(message).__name__)
def message(request):
    return request.param


@pytest.fixture
def make_contract():
    def make(**terms):
        known = {
            "model": "tinycnn",
            "cut": "middle",
            "topology": "u",
            "heads": "shared",
            "activation_shape": (5,),
            "output_shape": (4,),
            "codec": "raw",
            "codec_options": {},
            "code_size": 5,
            "fingerprint": "",
            "seed": 0,
            "clients": 2,
            "batch_size": 8,
            "turn_steps": 0,
        }
        return Contract(**(known | terms))

    return make
