import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightsplit.errors import ConfigError
from lightsplit.runs import Schedule

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


def steps_by_client(schedule):
    used = [0] * len(schedule.batches)
    for turn in schedule.turns():
        used[turn.client] += turn.steps
    return used


@given(schedules)
def test_equal_clients_use_each_batch_once_per_epoch(schedule):
    equal = Schedule([schedule.batches[0]] * 3, schedule.turn_steps, schedule.epochs)
    assert steps_by_client(equal) == [schedule.batches[0] * schedule.epochs] * 3


@given(schedules)
def test_an_epoch_is_a_pass_over_all_data_up_to_one_step_of_each_client(schedule):
    epoch = Schedule(schedule.batches, schedule.turn_steps)
    more = epoch.total_steps - sum(schedule.batches)
    assert 0 <= more < len(schedule.batches)


@given(schedules)
def test_turn_t_is_that_of_client_t_mod_n_whatever_data_the_clients_have(schedule):
    order = [turn.client for turn in schedule.turns()]
    assert order == [t % len(schedule.batches) for t in range(len(order))]


@given(schedules)
def test_with_turns_of_steps_an_evaluation_sees_as_many_steps_of_each(schedule):
    if not schedule.turn_steps or schedule.max_steps:
        return
    steps, used = 0, [0] * len(schedule.batches)
    for turn in schedule.turns():
        steps += turn.steps
        used[turn.client] += turn.steps
        if any(schedule.is_evaluated(turn, steps, every) for every in (0, 1)):
            assert len(set(used)) == 1


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
def test_in_a_round_every_client_has_one_turn(schedule):
    rounds = {}
    for turn in schedule.turns():
        rounds.setdefault(turn.round, []).append(turn.client)
    *whole, last = rounds.values()  # a limit of steps may cut the last round short
    everyone = list(range(len(schedule.batches)))
    assert all(clients == everyone for clients in whole)
    assert last == everyone[: len(last)]


@given(schedules)
def test_every_whole_epoch_ends_exactly_once(schedule):
    ends = [turn.epoch for turn in schedule.turns() if turn.ends_epoch]
    epoch = Schedule(schedule.batches, schedule.turn_steps).total_steps
    whole = schedule.total_steps // epoch
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


def test_a_client_with_little_data_starts_its_next_pass():
    schedule = Schedule([1, 5], turn_steps=1)
    assert [turn.client for turn in schedule.turns()] == [0, 1] * 3
    assert schedule.total_steps == 6


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


def test_a_client_that_claims_a_million_batches_takes_no_memory():
    tracemalloc.start()
    try:
        turns = Schedule([2**20] * 8, 1, epochs=3).turns()
        first = list(itertools.islice(turns, 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [turn.client for turn in first[:9]] == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert peak < 2**20


@pytest.mark.parametrize("max_steps", [0, 5])
@pytest.mark.parametrize("turn_steps", [0, 1, 2])
def test_codes_that_are_sent_once_have_two_phases_before_the_server(
    turn_steps, max_steps
):
    plain = Schedule([3, 5], turn_steps, 2, max_steps)
    once = Schedule([3, 5], turn_steps, 2, max_steps, local_epochs=1)
    turns = list(once.turns())
    by_phase = {
        phase: [turn for turn in turns if turn.phase == phase]
        for phase in ("local", "release", "train")
    }
    assert [turn for part in by_phase.values() for turn in part] == turns
    assert by_phase["train"] == list(plain.turns())
    assert [(turn.client, turn.steps) for turn in by_phase["release"]] == [
        (0, 3),
        (1, 5),
    ]
    assert sum(turn.steps for turn in turns) == once.total_steps
    for client in (0, 1):
        own = sum(turn.steps for turn in turns if turn.client == client)
        assert once.steps_of(client) == own
    done = 0
    for turn in turns:
        phase, first, length = once.phase_at(done)
        assert phase == turn.phase
        assert first <= done < first + length
        done += turn.steps
        is_due = once.is_evaluated(turn, done, 0)
        assert not is_due or turn.trains_server
        assert turn.ends_early_epoch == (turn.ends_epoch and not turn.trains_server)
    assert once.phase_at(once.total_steps)[0] == "train"
