"""The server's handling of a turn; test_any_course_of_events has the rest."""

import pytest
import torch

from lightsplit.errors import ProtocolError
from lightsplit.protocol import OutputGradient
from lightsplit.protocol.control import TurnDone
from lightsplit.runs.plan import RunPlan


def train(net, run, *, rows=2, **done):
    """Take the steps of the current order and hand it in."""
    order = run.turns.current
    first = run.progress.client_steps[order.client]
    for step in range(first, first + order.steps):
        run.answer(order, net.code(order.client, step))
        gradient = OutputGradient(order.client, step, torch.zeros(rows, 4))
        run.answer(order, gradient)
    done = TurnDone(order.number, **{"side": b"sealed", **done})
    run.complete(order, run.members[order.client], done)


def test_a_side_must_come_where_one_travels(net, tmp_path):
    run = net.make_run(tmp_path)
    with pytest.raises(ProtocolError, match="need a sealed side"):
        train(net, run, side=b"")
    assert run.progress.turns == 0


def test_the_side_that_a_turn_left_is_in_the_next_grant(net, tmp_path):
    run = net.make_run(tmp_path)
    assert run.grant(run.turns.current).side == b""
    train(net, run, side=b"first")
    assert run.grant(run.turns.current).side == b"first"


def test_losses_are_weighted_by_samples(net, tmp_path):
    run = net.make_run(tmp_path, (1, 1))
    train(net, run, rows=1, loss=1.0, figures=(1.0, 0.5))
    train(net, run, rows=2, loss=4.0, figures=(1.0, 0.5))
    assert run.progress.history[-1]["train_loss"] == pytest.approx(3.0)


def test_a_turn_that_is_not_done_cannot_be_handed_in(net, tmp_path):
    run = net.make_run(tmp_path)
    order = run.turns.current
    with pytest.raises(ProtocolError, match="has 1 steps, 0 are done"):
        run.complete(order, run.members[0], TurnDone(0, b"sealed"))


def test_a_step_beyond_the_turn_is_refused(net, tmp_path):
    run = net.make_run(tmp_path)
    with pytest.raises(ProtocolError, match="turn 0 ends with step 0, got step 1"):
        run.answer(run.turns.current, net.code(0, 1))


def test_the_position_is_that_of_the_last_turn(net, tmp_path):
    run = net.make_run(tmp_path, (2, 1), plan=RunPlan(epochs=2))
    found = [run.turns.position]
    while run.finished is None:
        train(net, run)
        found.append(run.turns.position)
    epochs = [(1, 1), (1, 1), (1, 2), (1, 2), (2, 3), (2, 3), (2, 4), (2, 4)]
    assert found == [(0, 0), *epochs]


def test_a_turn_that_fills_memory_is_repeated_from_disk_with_the_same_replies(
    net, tmp_path
):
    run = net.make_run(tmp_path, (5,), plan=RunPlan(turn_steps=5), turn_steps=5)
    run._logs.current._replies._limit = 0
    order = run.turns.current

    def turn():
        told = []
        for step in range(5):
            told.append(run.answer(order, net.code(0, step)).output.values)
            told.append(run.answer(order, net.gradient(0, step)).gradient)
            run.settle()
        return torch.stack(told)

    first = turn()
    assert torch.equal(turn(), first)
    assert run._steps._server.applied == [(0, step) for step in range(5)]
    run.close()


def apply(net, run):
    """Take the steps of the current order, which is not handed in."""
    order, first = run.turns.current, run.grant(run.turns.current).first_step
    for step in range(first, first + order.steps):
        run.answer(order, net.code(order.client, step))
        run.answer(order, net.gradient(order.client, step))
    return order


def hand_in(run, order, **done):
    run.complete(order, run.members[order.client], TurnDone(order.number, **done))


def test_with_private_heads_the_next_turn_does_not_wait(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    late = run.turns.current
    assert not run.start_next_early(late)
    apply(net, run)
    assert run.start_next_early(late)
    assert [run.turns.of(client) for client in (0, 1, 2)] == [
        late,
        run.turns.current,
        None,
    ]
    assert run.turns.current.client == 1
    assert run.progress.client_steps == [1, 0, 0]
    assert run.turns.oldest is late
    assert not run.turns.is_at_boundary
    hand_in(run, late, loss=2.0)
    assert run.turns.oldest is run.turns.current
    assert run.turns.is_at_boundary
    assert run.members[0].loss == 2.0


def test_only_one_turn_is_late_at_a_time(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    late = apply(net, run)
    assert run.start_next_early(late)
    second = apply(net, run)
    assert not run.start_next_early(second)
    hand_in(run, late)
    assert run.start_next_early(second)


def test_the_samples_of_a_late_turn_weigh_its_loss(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    late = apply(net, run)
    run.start_next_early(late)
    run.answer(run.turns.current, net.code(1, 0))  # nothing of this one is done
    hand_in(run, late, loss=3.0)
    assert (run.progress.loss_sum, run.progress.loss_samples) == (6.0, 2)


@pytest.mark.parametrize(
    ("plan", "terms"),
    [
        (RunPlan(), {"heads": "shared"}),
        (RunPlan(checkpoint_every=1), {"heads": "private"}),
        (RunPlan(eval_every=1), {"heads": "private", "batches": (1, 1)}),
        (RunPlan(max_steps=2), {"heads": "private"}),
    ],
    ids=["side", "checkpoint", "evaluation", "end"],
)
def test_a_turn_is_waited_for_where_something_hangs_on_it(plan, terms, net, tmp_path):
    run = net.make_run(tmp_path, plan=plan, **terms)
    if plan.eval_every or plan.max_steps:  # due after the second turn
        first = apply(net, run)
        assert run.start_next_early(first)
        hand_in(run, first)
    order = apply(net, run)
    assert not run.start_next_early(order)
    assert run.turns.current is order


def test_a_guarded_turn_is_waited_for(net, tmp_path):
    run = net.make_run(tmp_path, heads="private")
    run.state.guard = object()
    order = run.turns.current
    run._logs.current.done = order.steps
    assert not run.start_next_early(order)


def test_a_run_that_is_over_has_no_assignment(net, tmp_path):
    run = net.make_run(tmp_path, (1, 1))
    for _ in range(2):
        assert run.finished is None
        train(net, run)
    assert run.turns.current is None
    assert (run.finished.reason, run.finished.side) == ("schedule", b"sealed")


def test_an_evaluation_by_all_gets_the_side_of_its_turn_and_hands_none_on(
    net, tmp_path
):
    run = net.make_run(tmp_path, (1, 1), plan=RunPlan(every_client_evaluates=True))
    train(net, run, side=b"first")
    train(net, run, side=b"second")
    order = run.turns.current
    grant = run.grant(order)
    assert (grant.turn, grant.steps, grant.side) == (1, 0, b"second")
    with pytest.raises(ProtocolError, match="no side travels after an evaluation"):
        hand_in(run, order, side=b"third")
    hand_in(run, order, figures=(1.0, 0.5), samples=3)
    hand_in(run, run.turns.current, figures=(2.0, 1.0), samples=1)
    line = run.progress.history[-1]
    assert (line["test_loss"], line["weighted_by"]) == (1.25, "samples")
    assert line["client_names"] == ["alice", "bob"]
