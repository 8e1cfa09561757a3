"""A message of a turn is computed once, or refused."""

import pytest

from lightsplit.deployment.assignments import Assignment
from lightsplit.deployment.turn_steps import TurnSteps
from lightsplit.errors import ProtocolError
from lightsplit.runs.schedule import Turn
from lightsplit.runtime import Pace

TURN = Turn(0, 0, 0, 2, ends_round=False, ends_epoch=False)
PACE = Pace(5, 2, 10, 40)
WORK = Assignment(TURN, number=3, client=0, steps=2, evaluate=False)


@pytest.fixture
def steps(net):
    return TurnSteps(net.CountingServer(), net.make_contract())


def test_steps_are_answered_in_their_order(steps, net):
    for step in (5, 6):
        steps.answer(WORK, PACE, net.code(0, step))
        steps.answer(WORK, PACE, net.gradient(0, step))
        steps.settle()
    assert steps._server.applied == [(0, 5), (0, 6)]
    with pytest.raises(ProtocolError, match="turn 3 ends with step 6, got step 7"):
        steps.answer(WORK, PACE, net.code(0, 7))


def test_a_code_outside_training_is_no_step(steps, net):
    steps.answer(WORK, PACE, net.code(0, 99, is_training=False))
    assert steps.logs.are_empty


def test_an_open_step_can_be_abandoned_and_begun_again(steps, net):
    steps.answer(WORK, PACE, net.code(0, 5))
    steps.abandon(WORK, 5)
    assert steps._server.open is None
    steps.answer(WORK, PACE, net.code(0, 5))
    steps.answer(WORK, PACE, net.gradient(0, 5))
    assert steps._server.applied == [(0, 5)]


def test_a_late_turn_has_no_open_step(steps, net):
    steps.logs.make_late(WORK)
    other = Assignment(TURN, number=4, client=1, steps=2, evaluate=False)
    steps.answer(other, Pace(0, 2, 0, 4), net.code(1, 0))
    steps.abandon(WORK, 5)
    assert steps._server.open == (1, 0)


@pytest.mark.parametrize("error", [RuntimeError, ValueError, IndexError])
def test_a_message_that_the_modules_cannot_compute_is_refused(error, net):
    server = net.CountingServer()

    def fail(_request):
        raise error("mat1 and mat2\ncannot be multiplied")

    server.answer = fail
    steps = TurnSteps(server, net.make_contract())
    with pytest.raises(
        ProtocolError, match="mat1 and mat2 cannot be multiplied"
    ) as got:
        steps.answer(WORK, PACE, net.code(0, 5))
    assert got.value.code == "refused"


def test_the_guards_collector_sees_every_message(net):
    class Guard:
        def __init__(self):
            self.seen = []

        def collector(self, message, call_next):
            self.seen.append(message.kind)
            return call_next(message)

    guard = Guard()
    steps = TurnSteps(net.CountingServer(), net.make_contract(), guard)
    steps.answer(WORK, PACE, net.code(0, 5))
    steps.answer(WORK, PACE, net.gradient(0, 5))
    assert guard.seen == ["code", "output_gradient"]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("local", "no message"), ("release", "release"), ("train", "recall or output")],
)
def test_a_message_of_another_phase_is_refused(phase, expected, net):
    steps = TurnSteps(net.CountingServer(), net.make_contract(release="once"))
    with pytest.raises(ProtocolError, match=f"expected {expected}.*, got code"):
        steps.answer(WORK, Pace(5, 2, 10, 40, phase), net.code(0, 5))
