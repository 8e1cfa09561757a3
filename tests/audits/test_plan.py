from dataclasses import replace

import pytest

from lightsplit.attacks import ATTACKS
from lightsplit.audits import AuditOptions
from lightsplit.audits.plan import plan, suited
from lightsplit.audits.victim import restore
from lightsplit.errors import AuditError, ConfigError, UnknownNameError


def names(**options):
    return [one.attack.name for one in plan(AuditOptions(**options))]


def trivial():
    return [name for name in ATTACKS.names() if ATTACKS.get(name).kind == "trivial"]


def test_the_trivial_attackers_come_first_whatever_is_asked_for():
    assert names(attacks=("decoder",)) == [*trivial(), "decoder"]


def test_by_default_the_ladder_and_label_inference_are_run():
    chosen = names()
    assert {"linear", "decoder", "whitebox"} <= set(chosen)
    assert {"label-hint", "label-kmeans", "label-norm"} <= set(chosen)
    assert "unsplit" not in chosen


def test_all_is_all():
    assert set(names(attacks=("all",))) == set(ATTACKS.names())


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("both", ["published", "adaptive"]),
        ("adaptive", ["adaptive"]),
        ("published", ["published"]),
    ],
)
def test_a_form_is_chosen_where_there_are_several(form, expected):
    planned = plan(AuditOptions(attacks=("unsplit",), form=form))
    assert [one.form for one in planned if one.attack.name == "unsplit"] == expected


def test_an_attack_with_one_form_is_run_whatever_form_is_asked_for():
    assert "linear" in names(attacks=("linear",), form="published")


def test_a_budget_says_how_many_images_unless_a_number_is_given():
    assert AuditOptions().target_count < AuditOptions(budget="full").target_count
    assert AuditOptions(images=7, auxiliary=9).target_count == 7
    assert AuditOptions(images=7, auxiliary=9).auxiliary_count == 9


def test_an_unknown_attack_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'decoder'"):
        plan(AuditOptions(attacks=("decodr",)))


def options_of(name, *attacks):
    planned = plan(AuditOptions(attacks=attacks))
    return [one.options for one in planned if one.attack.name == name]


def test_an_attack_is_planned_once_for_each_set_of_options():
    named = ("decoder", "decoder:blocks=4,lr=1", "decoder:lr=1,blocks=4", "decoder")
    assert options_of("decoder", *named) == [{}, {"blocks": 4, "lr": 1.0}]


def test_all_runs_beside_the_options_that_are_given():
    assert options_of("sdar", "all", "sdar:wcc=0.01")[::2] == [{}, {"wcc": 0.01}]


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        ("decoder:blokcs=4", "'decoder' has no option 'blokcs'.*mean 'blocks'"),
        ("decoder:blocks=many", "must be a whole number, got 'many'"),
        ("decoder:pairs=3", "has no option 'pairs'"),
        ("sdar:seed=3", "has no option 'seed'"),
        ("sdar:settings=3", "has no option 'settings'"),
        ("mean-image:lr=3", "has no option 'lr'; it has none"),
        ("decoder:", "expected NAME"),
    ],
)
def test_options_that_an_attack_does_not_take_are_refused(attack, reason):
    with pytest.raises(ConfigError, match=reason):
        plan(AuditOptions(attacks=(attack,)))


@pytest.mark.parametrize(
    "options", [{"form": "none"}, {"budget": "huge"}, {"images": -1}, {"auxiliary": -1}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        AuditOptions(**options)


def test_all_leaves_out_attacks_that_cannot_be_built_for_the_run(trained):
    job = restore(trained(dataset="digits", cut="l1"))
    flat = replace(job.contract, activation_shape=(1024,))
    options = AuditOptions(attacks=("all",))
    task = job.experiment.make_task()
    whole = suited(plan(options), options, task, job.contract)
    built = {one.attack.name for one in whole}
    left = suited(plan(options), options, task, flat)
    gone = built - {one.attack.name for one in left}
    maps = {"sdar", "fora", "fora-reference", "ginver", "inverse-net"}
    assert gone == maps


def test_an_attack_that_was_named_says_why_it_cannot_be_built(trained):
    job = restore(trained())
    flat = replace(job.contract, activation_shape=(1024,))
    task, options = job.experiment.make_task(), AuditOptions(attacks=("sdar",))
    with pytest.raises(AuditError, match=r"got \(1024,\); choose an earlier cut"):
        suited(plan(options), options, task, flat)
