import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.errors import ConfigError
from lightsplit.training import Schedule

schedules = st.builds(
    Schedule,
    batches=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    turn_steps=st.integers(0, 5),
    epochs=st.integers(1, 4),
    max_steps=st.integers(0, 60),
)


@given(schedules)
def test_the_turns_add_up_to_the_total(schedule):
    assert sum(turn.steps for turn in schedule.turns()) == schedule.total_steps


@given(schedules)
def test_without_a_limit_every_client_uses_each_batch_once_per_epoch(schedule):
    if schedule.max_steps:
        return
    used = [0] * len(schedule.batches)
    for turn in schedule.turns():
        used[turn.client] += turn.steps
    assert used == [count * schedule.epochs for count in schedule.batches]


@given(schedules)
def test_the_steps_of_a_client_are_those_of_its_turns(schedule):
    for client in range(len(schedule.batches)):
        turns = [turn for turn in schedule.turns() if turn.client == client]
        assert schedule.steps_of(client) == sum(turn.steps for turn in turns)


@given(schedules)
def test_no_turn_is_empty_or_longer_than_allowed(schedule):
    longest = schedule.turn_steps or max(schedule.batches)
    assert all(1 <= turn.steps <= longest for turn in schedule.turns())


@given(schedules)
def test_in_a_round_every_client_has_at_most_one_turn_in_order(schedule):
    rounds = {}
    for turn in schedule.turns():
        rounds.setdefault(turn.round, []).append(turn.client)
    assert all(clients == sorted(set(clients)) for clients in rounds.values())


@given(schedules)
def test_every_whole_epoch_ends_exactly_once(schedule):
    ends = [turn.epoch for turn in schedule.turns() if turn.ends_epoch]
    whole = schedule.total_steps // sum(schedule.batches)
    assert ends == list(range(whole))


@given(schedules)
def test_more_epochs_only_add_turns_at_the_end(schedule):
    if schedule.max_steps:
        return
    longer = Schedule(schedule.batches, schedule.turn_steps, schedule.epochs + 1)
    turns = list(schedule.turns())
    assert list(longer.turns())[: len(turns)] == turns


def test_single_steps_go_round_robin_as_in_the_papers_algorithm():
    schedule = Schedule([3, 3, 3], turn_steps=1)
    assert [turn.client for turn in schedule.turns()] == [0, 1, 2] * 3


def test_turn_steps_zero_is_a_whole_epoch_of_each_client():
    schedule = Schedule([3, 5], turn_steps=0)
    assert [(turn.client, turn.steps) for turn in schedule.turns()] == [(0, 3), (1, 5)]


@pytest.mark.parametrize(
    "bad",
    [
        {"batches": []},
        {"batches": [3, 0]},
        {"batches": [3], "turn_steps": -1},
        {"batches": [3], "epochs": 0},
        {"batches": [3], "max_steps": -1},
    ],
)
def test_an_impossible_schedule_is_refused(bad):
    with pytest.raises(ConfigError):
        Schedule(**bad)
