"""What the server makes of a turn; the courses of events are in test_turns."""

import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.protocol import OutputGradient
from lightsplit.protocol.control import TurnDone
from lightsplit.training.plan import Plan


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
    course._logs.current._replies._limit = 0
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


def apply(net, course):
    """Take the steps of the current order, which is not handed in."""
    order, first = course.current(), course.grant(course.current()).first_step
    for step in range(first, first + order.steps):
        course.answer(order, net.code(order.client, step))
        course.answer(order, net.gradient(order.client, step))
    return order


def hand_in(course, order, **done):
    course.complete(order, course.members[order.client], TurnDone(order.number, **done))


def test_with_private_heads_the_next_turn_does_not_wait(net, tmp_path):
    course = net.make_course(tmp_path, heads="private")
    late = course.current()
    assert not course.go_on(late)
    apply(net, course)
    assert course.go_on(late)
    assert [course.order_of(client) for client in (0, 1, 2)] == [
        late,
        course.current(),
        None,
    ]
    assert course.current().client == 1
    assert course.progress.client_steps == [1, 0, 0]
    assert course.oldest is late
    assert not course.is_at_boundary
    hand_in(course, late, loss=2.0)
    assert course.oldest is course.current()
    assert course.is_at_boundary
    assert course.members[0].loss == 2.0


def test_only_one_turn_is_late_at_a_time(net, tmp_path):
    course = net.make_course(tmp_path, heads="private")
    late = apply(net, course)
    assert course.go_on(late)
    second = apply(net, course)
    assert not course.go_on(second)
    hand_in(course, late)
    assert course.go_on(second)


def test_the_samples_of_a_late_turn_weigh_its_loss(net, tmp_path):
    course = net.make_course(tmp_path, heads="private")
    late = apply(net, course)
    course.go_on(late)
    course.answer(course.current(), net.code(1, 0))  # nothing of this one is done
    hand_in(course, late, loss=3.0)
    assert (course.progress.loss_sum, course.progress.loss_samples) == (6.0, 2)


@pytest.mark.parametrize(
    ("plan", "terms"),
    [
        (Plan(), {"heads": "shared"}),
        (Plan(checkpoint_every=1), {"heads": "private"}),
        (Plan(eval_every=1), {"heads": "private", "batches": (1, 1)}),
        (Plan(max_steps=2), {"heads": "private"}),
    ],
    ids=["side", "checkpoint", "evaluation", "end"],
)
def test_a_turn_is_waited_for_where_something_hangs_on_it(plan, terms, net, tmp_path):
    course = net.make_course(tmp_path, plan=plan, **terms)
    if plan.eval_every or plan.max_steps:  # due after the second turn
        first = apply(net, course)
        assert course.go_on(first)
        hand_in(course, first)
    order = apply(net, course)
    assert not course.go_on(order)
    assert course.current() is order


def test_a_guarded_turn_is_waited_for(net, tmp_path):
    course = net.make_course(tmp_path, heads="private")
    course.guard = object()
    order = course.current()
    course._logs.current.done = order.steps
    assert not course.go_on(order)


def test_a_course_that_is_over_has_no_order(net, tmp_path):
    course = net.make_course(tmp_path, (1, 1))
    for _ in range(2):
        assert course.finished is None
        train(net, course)
    assert course.current() is None
    assert (course.finished.reason, course.finished.side) == ("schedule", b"sealed")
