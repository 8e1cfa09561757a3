"""What the server makes of a turn; the courses of events are in test_turns."""

import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.protocol import OutputGradient
from lightsplit.protocol.control import TurnDone
from lightsplit.training.course import Plan


def train(net, course, *, rows=2, **done):
    """Take the steps of the current order and hand it in."""
    order = course.current()
    first = course.progress.client_steps[order.client]
    for step in range(first, first + order.steps):
        course.answer(order, net.code(order.client, step))
        gradient = OutputGradient(order.client, step, torch.zeros(rows, 4))
        course.answer(order, gradient)
    done = TurnDone(order.number, **{"side": b"sealed", **done})
    course.complete(order, course.members[order.client], done)


def test_a_side_must_come_where_one_travels(net, tmp_path):
    course = net.make_course(tmp_path)
    with pytest.raises(ProtocolError, match="need a sealed side"):
        train(net, course, side=b"")
    assert course.progress.turns == 0


def test_the_side_that_a_turn_left_is_in_the_next_grant(net, tmp_path):
    course = net.make_course(tmp_path)
    assert course.grant(course.current()).side == b""
    train(net, course, side=b"first")
    assert course.grant(course.current()).side == b"first"


def test_losses_are_weighted_by_samples(net, tmp_path):
    course = net.make_course(tmp_path, (1, 1))
    train(net, course, rows=1, loss=1.0, accuracy=0.5, test_loss=1.0)
    train(net, course, rows=2, loss=4.0, accuracy=0.5, test_loss=1.0)
    assert course.progress.history[-1]["train_loss"] == pytest.approx(3.0)


def test_a_turn_that_is_not_done_cannot_be_handed_in(net, tmp_path):
    course = net.make_course(tmp_path)
    order = course.current()
    with pytest.raises(ProtocolError, match="has 1 steps, 0 are done"):
        course.complete(order, course.members[0], TurnDone(0, b"sealed"))


def test_a_step_beyond_the_turn_is_refused(net, tmp_path):
    course = net.make_course(tmp_path)
    with pytest.raises(ProtocolError, match="turn 0 ends with step 0, got step 1"):
        course.answer(course.current(), net.code(0, 1))


def test_the_position_is_that_of_the_last_turn(net, tmp_path):
    course = net.make_course(tmp_path, (2, 1), plan=Plan(epochs=2))
    found = [course.position]
    while course.finished is None:
        train(net, course)
        found.append(course.position)
    assert found == [(0, 0), (1, 1), (1, 1), (1, 2), (2, 3), (2, 3), (2, 4)]


def test_a_turn_that_fills_memory_is_repeated_from_disk_with_the_same_replies(
    net, tmp_path
):
    course = net.make_course(tmp_path, (5,), plan=Plan(turn_steps=5), turn_steps=5)
    course._log._replies._limit = 0
    order = course.current()

    def turn():
        told = []
        for step in range(5):
            told.append(course.answer(order, net.code(0, step)).output.values)
            told.append(course.answer(order, net.gradient(0, step)).gradient)
            course.settle()
        return torch.stack(told)

    first = turn()
    assert torch.equal(turn(), first)
    assert course._server.applied == [(0, step) for step in range(5)]
    course.close()


def test_a_course_that_is_over_has_no_order(net, tmp_path):
    course = net.make_course(tmp_path, (1, 1))
    for _ in range(2):
        assert course.finished is None
        train(net, course)
    assert course.current() is None
    assert (course.finished.reason, course.finished.side) == ("schedule", b"sealed")
