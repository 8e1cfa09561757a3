"""Watching attacks run during training, and every requested attack runs."""

import pytest

from lightsplit.audits import AuditOptions
from lightsplit.audits.stages import stages
from lightsplit.errors import ConfigError


def made(*attacks, during=True):
    options = AuditOptions(attacks=attacks, during=during)
    return [(stage.during, stage.attacks) for stage in stages(options)]


def test_attacks_that_do_not_watch_run_after_training():
    assert made("fora", "fora-reference", "label-norm") == [
        (True, ("fora", "label-norm")),
        (False, ("fora-reference",)),
    ]
    assert made("sdar") == [(True, ("sdar",))]


def test_an_attack_keeps_its_options_in_its_stage():
    assert made("sdar:wcc=0.01", "linear:ridge=1", "label-kmeans:restarts=2") == [
        (True, ("sdar:wcc=0.01", "label-kmeans:restarts=2")),
        (False, ("linear:ridge=1",)),
    ]


def test_trivial_attacks_that_are_named_are_made_too():
    assert made("label-norm", "all-black")[1] == (False, ("all-black",))


def test_all_is_made_in_training_and_after_it():
    assert made("all") == [(True, ("all",)), (False, ("all",))]


def test_without_names_only_those_which_watch_are_made_in_training():
    assert made() == [(True, ())]


def test_only_the_part_in_training_is_resumed():
    options = AuditOptions(attacks=("fora", "linear"), during=True, resume=True)
    assert [stage.resume for stage in stages(options)] == [True, False]


def test_attacks_that_learn_in_training_do_not_run_after_it():
    with pytest.raises(ConfigError, match="fora learns in training"):
        made("fora", during=False)
    with pytest.raises(ConfigError, match="name an attack that learns"):
        made("linear")
