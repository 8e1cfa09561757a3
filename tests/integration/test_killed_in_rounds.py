"""After kill -9 at any moment of any round, a run ends like an undisturbed one."""

import json

import pytest
from lab.faults import (
    ALL_OF_A_ROUND,
    BETWEEN_ROUNDS,
    IN_A_ROUND,
    in_turn,
    left_behind,
    train_under_kills,
)
from lab.runs import (
    NAMES,
    assert_same_state,
    assert_same_weights,
    build,
    build_job,
    reference,
)

from lightsplit.runs.rounds import read_participation

KILLS = 10
SPLITFED = {"turn_steps": 2, "hand_off": "fp32", "hand_off_optimizer": "travels"}
SCHEDULES = {
    "parallel, shared heads": {"rounds": "parallel", "heads": "shared"},
    "parallel, private heads": {"rounds": "parallel", "heads": "private"},
    "splitfed-v1": {"rounds": "splitfed-v1", **SPLITFED},
    "splitfed-v2": {"rounds": "splitfed-v2", **SPLITFED},
}
VICTIMS = {
    "server": ("server", ALL_OF_A_ROUND, 20),
    "owner in a round": (None, IN_A_ROUND, 12),
    "owner between rounds": (None, BETWEEN_ROUNDS, 6),
}


def of_rounds(schedule, count):
    """Return the settings of a run with so many rounds; an epoch has two batches."""
    known = SCHEDULES[schedule]
    return {**known, "epochs": count * known.get("turn_steps", 1) // 2}


def participation_of(cluster):
    """Return who was in each round; each is told of once, in order."""
    file = cluster.folder / "server" / "participation.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["round"] for line in lines] == list(range(len(lines)))
    return read_participation(file, len(NAMES))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("victim", VICTIMS)
def test_ten_kills_lose_nothing_and_repeat_nothing(victim, schedule, make_cluster):
    settings = of_rounds(schedule, 12)
    name, kinds, gap = VICTIMS[victim]
    cluster = make_cluster(
        settings, serve=["--checkpoint-every", 9], join=["--give-up-seconds", 300]
    )
    train_under_kills(
        cluster,
        in_turn(name),
        count=KILLS,
        seed=f"{victim} {schedule}",
        longest_gap=gap,
        kinds=kinds,
    )
    assert_same_weights(left_behind(cluster), reference(**settings))
    told = participation_of(cluster)
    assert [one.done for one in told] == [(0, 1, 2)] * 12


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kills_of_owners_who_stay_away_are_repeated_from_the_participation(
    schedule, make_cluster
):
    settings = of_rounds(schedule, 40)
    cluster = make_cluster(
        settings,
        serve=["--checkpoint-every", 9, "--min-clients", 1, "--round-timeout", 0.3],
        join=["--give-up-seconds", 300],
    )
    train_under_kills(
        cluster,
        in_turn("server", None, None),
        count=KILLS,
        seed="7",
        longest_gap=25,
        kinds=ALL_OF_A_ROUND,
        away_seconds=1,
    )
    told = participation_of(cluster)
    job = build(build_job(**settings).experiment, participation=told)
    list(job.trainer.run())
    got = left_behind(cluster)
    assert_same_state(got.server, job.trainer.server.side.state())
    for index in told[-1].done:  # whoever missed the end has an earlier side
        assert_same_state(got.clients[index], job.trainer.clients[index].side.state())
    assert got.client_steps == job.trainer.progress.client_steps
