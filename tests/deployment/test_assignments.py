"""Assignments follow the schedule, with evaluations when they are due."""

from lightsplit.deployment.assignments import AssignmentQueue
from lightsplit.runs.schedule import Schedule


def assignments(queue):
    """Return all assignments of a run as (number, client, steps, evaluate)."""
    found, turns, steps = [], 0, 0
    while (work := queue.current(number=turns, steps=steps)) is not None:
        found.append((work.number, work.client, work.steps, work.evaluate))
        queue.complete()
        turns, steps = turns + bool(work.steps), steps + work.steps
    return found


def make_queue(*, shared, turns=0):
    schedule = Schedule([2, 1], turn_steps=1)
    return AssignmentQueue(
        schedule, turns=turns, eval_every=0, every_client_evaluates=not shared
    )


def test_with_shared_heads_the_last_client_speaks_for_all():
    assert assignments(make_queue(shared=True)) == [
        (0, 0, 1, False),
        (1, 1, 1, False),
        (2, 0, 1, False),
        (3, 1, 1, True),
    ]


def test_with_private_heads_every_client_is_tried_at_the_end():
    expected = [(0, 0, 1, False), (1, 1, 1, False)]
    expected += [(2, 0, 1, False), (3, 1, 1, False)]
    expected += [(3, 0, 0, True), (3, 1, 0, True)]
    assert assignments(make_queue(shared=False)) == expected


def test_a_boundary_lies_before_a_turn_and_after_its_evaluations():
    queue = make_queue(shared=False, turns=3)
    found = []
    turns, steps = 3, 3
    while (work := queue.current(number=turns, steps=steps)) is not None:
        found.append(queue.is_at_boundary)
        queue.complete()
        turns, steps = turns + bool(work.steps), steps + work.steps
    assert found == [True, False, False]
    assert queue.is_at_boundary


def test_the_end_of_a_turn_is_known_before_it_comes():
    queue = make_queue(shared=False)
    found = []
    turns = steps = 0
    while (work := queue.current(number=turns, steps=steps)) is not None:
        found.append(queue.ends_turn)
        queue.complete()
        turns, steps = turns + bool(work.steps), steps + work.steps
    assert found == [True, True, True, False, False, True]
