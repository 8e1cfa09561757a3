import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.groups import (
    alone_partner,
    beats_alone,
    raw_partner,
    spread,
)


def test_seeds_are_taken_together_and_nothing_else(make_run, runs_in):
    for seed in range(3):
        make_run(f"raw-{seed}", seed=seed, figures={"test_accuracy": 0.1 * seed})
    make_run("other", like="fixed-8")
    make_run("longer", epochs=7)
    groups = group_runs(runs_in()[0])
    assert sorted(len(group.runs) for group in groups) == [1, 1, 3]
    three = next(group for group in groups if len(group.runs) == 3)
    accuracy = three.spread("test_accuracy")
    assert accuracy.mean == pytest.approx(0.1)
    assert accuracy.deviation == pytest.approx(0.1)
    assert accuracy.seeds == 3


def test_a_run_that_is_repeated_is_no_second_seed(make_run, runs_in, attack):
    make_run("first", seed=1, figures={"test_accuracy": 0.5})
    make_run("again", seed=1, figures={"test_accuracy": 0.5}, audit=[attack("one", 0)])
    make_run("other", seed=2, figures={"test_accuracy": 0.7})
    (group,) = group_runs(runs_in()[0])
    assert sorted(run.path.name for run in group.runs) == ["again", "other"]
    assert [run.path.name for run in group.repeats] == ["first"]
    accuracy = group.spread("test_accuracy")
    assert accuracy.seeds == 2
    assert accuracy.mean == pytest.approx(0.6)


def test_the_raw_partner_is_of_the_same_setting(make_run, runs_in):
    make_run("raw")
    make_run("raw-private", heads="private")
    make_run("fixed", like="fixed-8")
    make_run("alone", like="fixed-8", clients=9)
    make_run("planted", like="fixed-8", trigger="badnets", malicious=0.1)
    groups = group_runs(runs_in()[0])
    partners = {group.runs[0].path.name: raw_partner(group, groups) for group in groups}
    assert partners["fixed"].runs[0].path.name == "raw"
    assert partners["alone"] is None
    assert partners["planted"] is None


@pytest.mark.parametrize("better", ["plain", "deep"])
def test_a_setting_is_measured_against_the_best_clients_without_a_server(
    make_run, runs_in, better
):
    plain, deep = (0.8, 0.7) if better == "plain" else (0.7, 0.8)
    make_run("plain", codec="none", figures={"test_accuracy": plain})
    make_run("deep", codec="none:hidden=8", figures={"test_accuracy": deep})
    make_run("below", figures={"test_accuracy": 0.75})
    groups = group_runs(runs_in()[0])
    by_name = {group.runs[0].path.name: group for group in groups}
    below = by_name["below"]
    assert alone_partner(below, groups).runs[0].path.name == better
    assert beats_alone(below, groups) is False
    assert beats_alone(by_name["plain"], groups) is None
    assert beats_alone(by_name["deep"], groups) is None


def test_leakage_is_that_of_the_strongest_attack_that_is_not_trivial(
    make_run, runs_in, attack
):
    audit = [
        attack("class-mean", 0.9, kind="trivial"),
        attack("weak", 0.2),
        attack("strong", 0.6),
        attack("labels", 0.99, kind="labels"),
    ]
    make_run("run", audit=audit)
    (group,) = group_runs(runs_in()[0])
    assert group.leakage().mean == 0.6


def test_figures_that_are_not_finite_do_not_count():
    assert spread([None, float("nan"), 0.5]).seeds == 1
    assert spread([None]) is None


def test_a_defence_on_raw_activations_is_no_yardstick(make_run, runs_in):
    make_run("a", like="raw", objective=("nopeek:0.5",))
    make_run("b", like="raw")
    make_run("c", like="fixed-8")
    groups = group_runs(runs_in()[0])
    fixed = next(group for group in groups if group.settings["codec"] != "raw")
    partner = raw_partner(fixed, groups)
    assert not partner.runs[0].tables.get("objective")
