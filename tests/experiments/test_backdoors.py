"""Backdoors from settings to record.json."""

import json

import pytest
import torch

from lightsplit.backdoors import PoisonedBatches
from lightsplit.errors import ConfigError
from lightsplit.experiments.backdoors import poisoned
from lightsplit.experiments.twin import clean_twin

ATTACK = {"trigger": "badnets", "malicious_clients": "1"}


def test_only_the_malicious_clients_batches_are_poisoned(small):
    experiment, source = small(**ATTACK), object()
    assert poisoned(experiment, source, 0) is source
    assert isinstance(poisoned(experiment, source, 1), PoisonedBatches)


def test_a_run_without_a_trigger_or_detector_has_neither_record(finished):
    record = finished().record
    assert record["backdoor"] is None
    assert record["detection"] is None


def test_the_record_has_the_backdoor_and_its_success(finished):
    backdoor = finished(**ATTACK, target_class=2).record["backdoor"]
    assert backdoor["trigger"] == "badnets"
    assert backdoor["malicious_clients"] == [1]
    assert backdoor["target_class"] == 2
    assert 0 < backdoor["trials"] < 20
    assert 0 <= backdoor["success_rate"] <= 1
    assert 0 <= backdoor["unmarked_rate"] <= 1
    assert backdoor["base_rate"] is None


def test_measuring_the_backdoor_costs_no_counted_byte(finished):
    plain, planted = finished().record, finished(**ATTACK).record
    assert planted["bytes"] == plain["bytes"]


def test_the_record_holds_the_last_verdict(finished):
    record = finished(**ATTACK, detector="cosine-code", epochs=3).record
    detection = record["detection"]
    assert detection["verdicts"] == 3
    assert len(detection["scores"]) == 3
    above = [c for c, s in enumerate(detection["scores"]) if s > 3]
    assert detection["flagged"] == above
    assert 0 < detection["false_alarm_rate"] < 1
    assert detection["undone_turns"] == [0, 0, 0]


def test_the_record_holds_the_verdicts_of_the_other_detectors(finished):
    settings = {**ATTACK, "epochs": 2}
    both = finished(**settings, detector="cosine-code, cosine-output").record
    first = finished(**settings, detector="cosine-code").record["detection"]
    other = finished(**settings, detector="cosine-output").record["detection"]
    assert list(both["experiment"]["detector"]) == ["cosine-code", "cosine-output"]
    assert first["others"] == []
    assert {**both["detection"], "others": []} == first
    (seen,) = both["detection"]["others"]
    assert seen.items() <= other.items()
    assert {"detector", "scores", "f1", "times_flagged"} <= seen.keys()


def test_all_verdicts_are_in_a_file_of_their_own(finished):
    done = finished(**ATTACK, detector="cosine-code,contra", epochs=2)
    lines = done.folder.verdicts_file.read_text().splitlines()
    assert list(map(json.loads, lines)) == done.job.trainer.progress.verdicts
    assert not finished().folder.verdicts_file.exists()


def test_without_a_trial_in_the_test_set_there_is_no_rate(finish):
    record = finish(trigger="semantic-label", malicious=1, test_limit=1).record
    backdoor = record["backdoor"]
    rates = {backdoor["success_rate"], backdoor["unmarked_rate"]}
    assert rates == {None} or backdoor["trials"] == 1


def test_the_twin_is_the_same_run_without_the_poison(finish, small):
    done = finish(**ATTACK, twin=True, detector="cosine-code", on_flag="skip")
    twin = clean_twin(small(**ATTACK, twin=True, detector="cosine-code"))
    assert twin == small()
    assert 0 <= done.record["backdoor"]["base_rate"] <= 1


def test_a_detector_ends_a_run_with_its_name_as_the_reason(finish):
    record = finish(detector="cosine-code", on_flag="stop", threshold=1e-6).record
    assert record["stopped_by"] == "detector"
    assert record["epochs"] == 1
    assert record["detection"]["flagged"]


def test_private_heads_are_measured_by_the_honest_clients(make_job):
    job = make_job(**ATTACK, heads="private")
    assert [client.index for client in job.witnesses()] == [0, 2]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"malicious": 0.1}, "need a trigger"),
        ({"trigger": "badnet"}, "did you mean 'badnets'"),
        ({"detector": "cosine"}, "unknown detector 'cosine'"),
        ({"detector": "contra,safesplit"}, "must be the only detector"),
        ({"on_flag": "skip"}, "needs a detector"),
        ({"trigger": "badnets", "malicious": 4}, "whole number up to 3"),
        ({"trigger": "badnets", "poison_ratio": 0.0}, "poison_ratio"),
        ({"detector": "fltrust", "trusted_client": 3}, "from 0 to 2, got 3"),
        ({"trusted_client": 1}, "trusted_client is not a setting of detector none"),
        (
            {"detector": "contra", "on_flag": "skip", "hand_off": "int8"},
            "got int8 and travels",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(small, settings, reason):
    with pytest.raises(ConfigError, match=reason):
        small(**settings)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"trigger": "badnets", "target_class": 10}, "from 0 to 9, got 10"),
        ({"detector": "cosine-output", "topology": "vanilla"}, "vanilla"),
        ({"detector": "contra", "sides": "one"}, "sides is not a setting"),
    ],
)
def test_settings_that_the_parts_do_not_have_are_refused(make_job, settings, reason):
    with pytest.raises(ConfigError, match=reason):
        make_job(**settings)


@pytest.mark.parametrize("detector", ["cosine-code", "cosine-output"])
def test_rounded_and_shortened_messages_are_judged_too(finished, detector):
    record = finished(wire="max", detector=detector).record
    assert all(score >= 0 for score in record["detection"]["scores"])


def test_a_trigger_alone_makes_a_tenth_of_the_clients_malicious(small):
    assert small(trigger="badnets").backdoor.malicious == 0.1
    assert len(small(trigger="badnets", clients=3).malicious_indices()) == 1


def test_a_poisoned_run_trains_on_other_samples(finished):
    plain, planted = finished(), finished(**ATTACK)
    weights = [
        done.job.trainer.server.side.state()["backbone.conv2.weight"]
        for done in (plain, planted)
    ]
    assert not torch.equal(*weights)


@pytest.mark.slow
def test_a_patch_is_learned_and_its_client_is_found_on_the_digits(finish):
    settings = {
        "train_limit": None,
        "test_limit": None,
        "clients": 10,
        "batch_size": 16,
    }
    done = finish(
        **settings, trigger="badnets", detector="cosine-code", twin=True, epochs=3
    )
    backdoor, detection = done.record["backdoor"], done.record["detection"]
    assert done.record["test_accuracy"] > 0.9
    assert backdoor["success_rate"] > 0.7
    assert backdoor["unmarked_rate"] < 0.05
    assert backdoor["base_rate"] < 0.2
    assert detection["flagged"] == backdoor["malicious_clients"]
    assert detection["f1"] == 1
