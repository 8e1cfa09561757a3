"""After kill -9 at any moment, a restarted run ends like an undisturbed one."""

import random

import pytest
from lab.faults import in_turn, left_behind, train_under_kills
from lab.runs import NAMES, assert_same_weights, reference

KILLS = 10
LONG = {"epochs": 8}  # 48 turns of one step


def choose_waiting(seed):
    chance = random.Random(seed)  # noqa: S311  the same victims every time
    return lambda speaker: chance.choice([n for n in NAMES if n != speaker])


@pytest.fixture
def long_cluster(make_cluster):
    def make(heads, **more):
        return make_cluster(
            {**LONG, "heads": heads, **more},
            serve=["--checkpoint-every", 3],
            join=["--give-up-seconds", 300],
        )

    return make


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize("victim", ["server", "client in turn", "waiting client"])
def test_ten_kills_change_nothing(victim, heads, long_cluster):
    choose = {
        "server": lambda _speaker: "server",
        "client in turn": lambda speaker: speaker,
        "waiting client": choose_waiting(seed=1),
    }[victim]
    cluster = long_cluster(heads)
    train_under_kills(cluster, choose, count=KILLS, seed=f"{victim} {heads}")
    assert_same_weights(left_behind(cluster), reference(**LONG, heads=heads))


@pytest.mark.slow
def test_residuals_and_evaluations_by_all_survive_kills_of_both_ends(long_cluster):
    lossy = {"wire": "max", "evaluate": "every"}
    cluster = long_cluster("shared", **lossy)
    victims = in_turn("server", None)
    train_under_kills(cluster, victims, count=KILLS, seed="residual")
    assert_same_weights(left_behind(cluster), reference(**LONG, **lossy))
