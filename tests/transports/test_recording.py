"""A recorder keeps all exchanges and changes none."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.protocol import CodeMessage, OutputMessage
from lightsplit.transports import Recorder, through


def reply_to(request):
    return OutputMessage(request.client, request.step, request.code)


def message(step, *, is_training=True):
    return CodeMessage(0, step, Code(torch.rand(2, 3)), is_training=is_training)


def test_the_very_request_and_reply_are_kept_and_returned():
    recorder, request = Recorder(), message(0)
    reply = through(recorder, reply_to)(request)
    [(kept_request, kept_reply)] = recorder.exchanges
    assert kept_request is request
    assert kept_reply is reply
    assert kept_request.code.values.data_ptr() == request.code.values.data_ptr()


def test_a_limit_keeps_the_newest():
    recorder = Recorder(limit=2)
    for step in range(5):
        through(recorder, reply_to)(message(step))
    assert [request.step for request, _ in recorder.exchanges] == [3, 4]


def test_passes_outside_training_can_be_left_out():
    recorder = Recorder(only_training=True)
    send = through(recorder, reply_to)
    send(message(0))
    send(message(1, is_training=False))
    assert [request.step for request, _ in recorder.exchanges] == [0]


def test_a_request_that_failed_is_not_kept():
    def failing(_request):
        raise RuntimeError("server is gone")

    recorder = Recorder()
    with pytest.raises(RuntimeError):
        through(recorder, failing)(message(0))
    assert not recorder.exchanges
