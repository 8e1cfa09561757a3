"""After kill -9 at any moment, a restarted run ends like an undisturbed one."""

import itertools
import random
import signal

import pytest
from lab.faults import Moments, left_behind, lines, supervise
from lab.runs import NAMES, assert_same_weights, reference

KILLS = 10
LONG = {"epochs": 8}  # 48 turns of one step


def run_with_kills(cluster, choose, *, seed):
    """Run to the end while ``choose`` names whom to kill; return the moments."""

    def strike(speaker):
        victim = cluster.processes[choose(speaker)]
        if victim.code is not None:
            return False
        victim.signal(signal.SIGKILL)
        return True

    moments = Moments(strike, count=KILLS, seed=seed)
    with lines(cluster, moments, cluster.start_server()) as proxies:
        for name in NAMES:
            cluster.start_client(name)
        supervise(cluster, proxies)
    return moments


def choose_waiting(seed):
    chance = random.Random(seed)  # noqa: S311  the same victims every time
    return lambda speaker: chance.choice([n for n in NAMES if n != speaker])


@pytest.fixture
def long_cluster(make_cluster):
    def make(heads, **more):
        return make_cluster(
            {**LONG, "heads": heads, **more},
            serve=["--checkpoint-every", 3],
            join=["--give-up-seconds", 60],
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
    moments = run_with_kills(cluster, choose, seed=f"{victim} {heads}")
    assert moments.left == 0, "the run ended before all kills"
    assert_same_weights(left_behind(cluster), reference(**LONG, heads=heads))


@pytest.mark.slow
def test_residuals_and_evaluations_by_all_survive_kills_of_both_ends(long_cluster):
    victims = itertools.cycle(["server", None])
    lossy = {"wire": "max", "evaluate": "every"}
    cluster = long_cluster("shared", **lossy)
    moments = run_with_kills(
        cluster, lambda speaker: next(victims) or speaker, seed="residual"
    )
    assert moments.left == 0, "the run ended before all kills"
    assert_same_weights(left_behind(cluster), reference(**LONG, **lossy))
