"""A turn's log: a step is answered once, and the same way when it is repeated."""

import pytest
import torch

from lightsplit.deployment.turn_log import TurnLog
from lightsplit.errors import ProtocolError
from lightsplit.protocol import CodeMessage


@pytest.fixture
def log(net):
    server = net.CountingServer()
    log, kinds = TurnLog(), ("code", "output_gradient")
    return log, server, lambda message: log.answer(message, kinds, 5, server.answer)


def test_a_message_that_is_sent_again_gets_the_answer_it_got(log, net):
    log, server, answer = log
    first = [answer(net.code(0, 5)), answer(net.gradient(0, 5))]
    again = [answer(net.code(0, 5)), answer(net.gradient(0, 5))]
    assert [id(reply) for reply in first] == [id(reply) for reply in again]
    assert server.applied == [(0, 5)]
    assert (log.done, log.samples) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "step", "expected"),
    [
        ("gradient", 5, "expected code of step 5, got output_gradient of step 5"),
        ("code", 6, "expected code of step 5, got code of step 6"),
        ("code", 4, "expected code of step 5, got code of step 4"),
    ],
)
def test_a_message_out_of_order_is_refused_and_leaves_no_trace(
    kind, step, expected, log, net
):
    log, server, answer = log
    with pytest.raises(ProtocolError, match=expected):
        answer(getattr(net, kind)(0, step))
    assert (log.done, log.is_empty, server.applied) == (0, True, [])


def test_an_open_step_that_was_forgotten_begins_anew(log, net):
    log, server, answer = log
    first = answer(net.code(0, 5))
    server.abandon_step()
    log.forget_open_step(5)
    assert log.is_empty
    assert answer(net.code(0, 5)) is not first
    answer(net.gradient(0, 5))
    log.forget_open_step(5)  # there is none
    assert server.applied == [(0, 5)]


def test_a_refused_step_is_not_remembered(log, net):
    log, server, answer = log
    server.open = (9, 9)
    with pytest.raises(ProtocolError, match="is open"):
        answer(net.code(0, 5))
    server.abandon_step()
    assert answer(net.code(0, 5)).step == 5


def test_a_log_counts_the_samples_of_whole_steps(net):
    log = TurnLog()
    server = net.CountingServer()
    message = CodeMessage(0, 0, net.code(0, 0).code, torch.zeros(2, dtype=torch.int64))
    log.answer(message, ("code",), 0, server.answer)
    log.answer(message, ("code",), 0, server.answer)
    assert (log.done, log.samples) == (1, 2)
    log.clear()
    assert (log.done, log.samples, log.is_empty) == (0, 0, True)
