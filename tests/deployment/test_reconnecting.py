"""A line that breaks is opened again, and the step is asked for again."""

import pytest
import torch

from lightsplit.codecs import Code
from lightsplit.deployment import pauses
from lightsplit.deployment.join_options import JoinOptions
from lightsplit.deployment.reconnecting import ReconnectingLine, TurnLostError
from lightsplit.errors import ProtocolError, RemoteError, TransportError
from lightsplit.protocol import OutputMessage
from lightsplit.protocol.control import Finished, Grant, Heard, Hello, Ready, Welcome

HELLO = Hello("alice", "{}")
GONE = TransportError("gone")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(pauses, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(pauses, "LONGEST_SECONDS", 0.002)


@pytest.fixture
def make(net):
    """Return what makes a line over scripts, one after the other."""

    def make(*scripts, in_rounds=False, **options):
        left = list(scripts)
        known = {"give_up_seconds": 5}
        return ReconnectingLine(
            lambda: left.pop(0),
            HELLO,
            lambda welcome: 2 + welcome.index,
            JoinOptions(**{**known, **options}),
            in_rounds=in_rounds,
        )

    return make


def entered(net, *answers):
    """Return a script that brings a client to its turn first."""
    return net.Script(Welcome(0, "r"), Grant(0, 1, 0), *answers)


def test_a_client_says_who_it_is_and_how_many_batches_it_has(net, make):
    script = net.Script(Welcome(1, "r"), Grant(0, 1, 0))
    assert make(script).reach() == Grant(0, 1, 0)
    assert script.heard == [HELLO, Ready(3)]


@pytest.mark.parametrize("answer", [Ready(1), Grant(0, 0, 0), Finished()])
def test_only_a_welcome_answers_a_hello(answer, net, make):
    with pytest.raises(ProtocolError, match="expected a welcome"):
        make(net.Script(answer)).reach()


def test_only_an_instruction_answers_ready(net, make):
    script = net.Script(Welcome(0, "r"), Welcome(0, "r"))
    with pytest.raises(ProtocolError, match="expected Grant or Finished, got Welcome"):
        make(script).reach()


def test_a_server_that_cannot_be_reached_is_given_up(net, make):
    with pytest.raises(TransportError, match="gone"):
        make(net.Script(GONE), give_up_seconds=0).reach()


def test_each_failed_attempt_is_told(net, make):
    told = []
    scripts = [net.Script(TransportError(text)) for text in ("refused", "stops")]
    last = net.Script(Welcome(0, "r"), Finished())
    make(*scripts, last, away=lambda error: told.append(str(error))).reach()
    assert told == ["refused", "stops"]
    assert [script.is_closed for script in scripts] == [True, True]


def test_a_refusal_is_not_tried_again(net, make):
    with pytest.raises(RemoteError):
        make(net.Script(RemoteError("no"))).reach()


def test_a_gradient_is_sent_again_after_its_code(net, make):
    code, gradient = net.code(0, 0), net.gradient(0, 0)
    first = entered(net, "output", GONE)
    second = entered(net, "output", "code gradient")
    line = make(first, second)
    line.reach()
    assert line.exchange(code, pytest.fail) == "output"
    assert line.exchange(gradient, lambda _grant: True) == "code gradient"
    assert second.heard == [HELLO, Ready(2), code, gradient]


def test_a_code_is_sent_again_alone(net, make):
    code = net.code(0, 0)
    second = entered(net, "output")
    line = make(entered(net, GONE), second)
    line.reach()
    assert line.exchange(code, lambda _grant: True) == "output"
    assert second.heard[2:] == [code]


def test_a_line_may_break_again_while_a_step_is_repeated(net, make):
    code, gradient = net.code(0, 0), net.gradient(0, 0)
    third = entered(net, "output", "code gradient")
    line = make(entered(net, "output", GONE), entered(net, "output", GONE), third)
    line.reach()
    line.exchange(code, pytest.fail)
    assert line.exchange(gradient, lambda _grant: True) == "code gradient"
    assert third.heard[2:] == [code, gradient]


def test_a_code_outside_training_is_not_repeated_for_a_gradient(net, make):
    code, gradient = net.code(0, 0), net.gradient(0, 0)
    second = entered(net, "output", "code gradient")
    line = make(entered(net, "output", "test output", GONE), second)
    line.reach()
    line.exchange(code, pytest.fail)
    line.exchange(net.code(0, 0, is_training=False), pytest.fail)
    line.exchange(gradient, lambda _grant: True)
    assert second.heard[2:] == [code, gradient]


def test_a_turn_that_the_server_left_is_lost(net, make):
    line = make(entered(net, GONE), net.Script(Welcome(0, "r"), Grant(9, 1, 0)))
    line.reach()
    with pytest.raises(TurnLostError) as caught:
        line.exchange(net.code(0, 0), lambda grant: grant.turn == 0)
    assert caught.value.instruction == Grant(9, 1, 0)


def test_the_end_is_acknowledged(net, make):
    script = net.Script(Welcome(0, "r"), Finished())
    line = make(script)
    line.finish()  # not connected: nothing to say
    line.close()
    line.reach()
    line.finish()
    line.close()
    assert (script.last, script.is_closed) == (Heard(), True)


def test_nothing_is_sent_before_the_server_is_reached(make):
    with pytest.raises(TransportError, match="not connected"):
        make().ask(Ready(1))


def test_a_step_begins_again_where_its_code_has_another_answer_now(net, make):
    """A round that was begun anew may have other owners, and so other outputs."""
    first, other = (
        OutputMessage(0, 0, Code(torch.full((2, 4), value))) for value in (1.0, 2.0)
    )
    again = entered(net, other)
    line = make(entered(net, first, GONE), again, in_rounds=True)
    line.reach()
    assert line.exchange(net.code(0, 0), lambda _: True) is first
    with pytest.raises(TurnLostError) as lost:
        line.exchange(net.gradient(0, 0), lambda _: True)
    assert lost.value.instruction == Grant(0, 1, 0)
    assert [type(one).__name__ for one in again.heard] == [
        "Hello",
        "Ready",
        "CodeMessage",
    ]
