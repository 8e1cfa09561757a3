from dataclasses import replace

import pytest

from lightsplit.attacks import ATTACKS
from lightsplit.audits import AuditOptions
from lightsplit.audits.plan import LADDER, plan, suited
from lightsplit.audits.victim import restore
from lightsplit.errors import AuditError, ConfigError, UnknownNameError


def names(**options):
    return [attack.name for attack, _ in plan(AuditOptions(**options))]


def trivial():
    return [name for name in ATTACKS.names() if ATTACKS.get(name).kind == "trivial"]


def test_the_trivial_attackers_come_first_whatever_is_asked_for():
    assert names(attacks=("decoder",)) == [*trivial(), "decoder"]


def test_by_default_the_ladder_and_label_inference_are_run():
    chosen = names()
    assert set(LADDER) <= set(chosen)
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
    assert [f for attack, f in planned if attack.name == "unsplit"] == expected


def test_an_attack_with_one_form_is_run_whatever_form_is_asked_for():
    assert "linear" in names(attacks=("linear",), form="published")


def test_a_budget_says_how_many_images_unless_a_number_is_given():
    assert AuditOptions().target_count < AuditOptions(budget="full").target_count
    assert AuditOptions(images=7, auxiliary=9).target_count == 7
    assert AuditOptions(images=7, auxiliary=9).auxiliary_count == 9


def test_an_unknown_attack_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'decoder'"):
        plan(AuditOptions(attacks=("decodr",)))


@pytest.mark.parametrize(
    "options", [{"form": "none"}, {"budget": "huge"}, {"images": -1}, {"auxiliary": -1}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        AuditOptions(**options)


def test_all_leaves_out_what_cannot_be_built_for_the_run(trained):
    job = restore(trained(dataset="digits", cut="l1"))
    flat = replace(job.contract, activation_shape=(1024,))
    options = AuditOptions(attacks=("all",))
    built = {kind.name for kind, _ in suited(plan(options), options, job)}
    left = suited(plan(options), options, replace(job, contract=flat))
    assert built - {kind.name for kind, _ in left} == {"sdar", "fora", "fora-reference"}


def test_an_attack_that_was_named_says_why_it_cannot_be_built(trained):
    job = restore(trained())
    flat = replace(job, contract=replace(job.contract, activation_shape=(1024,)))
    options = AuditOptions(attacks=("sdar",))
    with pytest.raises(AuditError, match=r"got \(1024,\); choose an earlier cut"):
        suited(plan(options), options, flat)
