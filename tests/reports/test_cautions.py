import pytest

from lightsplit.reports import group_runs
from lightsplit.reports.cautions import find_cautions

WHOLE = {"train_limit": None, "test_limit": None}
GOOD = {"test_accuracy": 0.9}


@pytest.fixture
def titles(runs_in):
    def call():
        runs, problems = runs_in()
        return [caution.title for caution in find_cautions(group_runs(runs), problems)]

    return call


def test_whole_runs_under_two_seeds_call_for_no_caution(make_run, titles):
    for seed in range(2):
        make_run(f"run-{seed}", seed=seed, figures=GOOD, **WHOLE)
    assert titles() == []


def test_a_run_that_is_repeated_is_told(make_run, titles):
    for name in ("one", "again"):
        make_run(name, figures=GOOD, **WHOLE)
    assert titles() == ["Repeated runs", "Single seed"]


def test_a_single_seed_is_told(make_run, titles):
    make_run("run", figures=GOOD, **WHOLE)
    assert titles() == ["Single seed"]


@pytest.mark.parametrize("limit", ["train_limit", "test_limit", "max_steps"])
def test_a_shortened_run_is_told(make_run, titles, limit):
    make_run("run", figures=GOOD, **{**WHOLE, limit: 100})
    assert titles() == ["Shortened runs", "Single seed"]


@pytest.mark.parametrize("accuracy", [0.1, None])
def test_a_run_that_collapsed_is_told_first(make_run, titles, accuracy):
    make_run("run", figures={"test_accuracy": accuracy}, **WHOLE)
    assert titles()[0] == "Collapsed to chance"


def test_chance_is_the_share_of_the_largest_class(make_run, titles):
    skewed = {"test_accuracy": 0.7, "label_histogram": [[70, 10], [20, 0]]}
    make_run("run", figures=skewed, **WHOLE)
    assert "Collapsed to chance" in titles()


def test_an_attack_that_beats_nothing_is_told(make_run, titles, attack):
    make_run("run", figures=GOOD, audit=[attack(beats_trivial=False)], **WHOLE)
    assert "Attacks that failed their sanity check" in titles()


def test_an_attack_that_was_cut_short_is_told(make_run, titles, attack):
    short = {**attack(), "converged": False}
    make_run("run", figures=GOOD, audit=[short], **WHOLE)
    assert "Attacks that had not converged" in titles()


def test_equal_figures_of_different_runs_are_told(make_run, titles, attack):
    for seed in range(2):
        make_run(f"run-{seed}", seed=seed, figures=GOOD, audit=[attack()], **WHOLE)
    assert titles() == ["Bit-identical attack figures"]


def test_a_trivial_attack_may_well_be_the_same_everywhere(make_run, titles, attack):
    audit = [attack("all-black", kind="trivial")]
    for seed in range(2):
        make_run(f"run-{seed}", seed=seed, figures=GOOD, audit=audit, **WHOLE)
    assert titles() == []


def test_runs_that_are_not_in_the_report_are_named(make_run, titles):
    make_run("run", figures=GOOD, **WHOLE)
    make_run("other").record_file.unlink()
    assert "Not in this report" in titles()


def test_a_setting_below_the_clients_alone_is_called_pointless(make_run, runs_in):
    alone = {"test_accuracy": 0.8}
    make_run("alone", codec="none", figures=alone)
    make_run("below", codec="lightsplit-f", ratio=8, figures={"test_accuracy": 0.79})
    make_run("above", codec="raw", figures={"test_accuracy": 0.81})
    groups = group_runs(runs_in()[0])
    found = {caution.title: caution for caution in find_cautions(groups, [])}
    places = found["No better than without the server"].places
    assert len(places) == 1
    assert "lightsplit-f 8x" in places[0]
