"""Clients that inspect honest and hijacking servers, on the digits."""

import pytest

from lightsplit.errors import ConfigError
from lightsplit.experiments import run

ALONE = {"clients": 1, "train_limit": None, "batch_size": 32, "epochs": 30, "wcc": 0.01}
STEPS = 100  # of a hijacked client, by which both inspectors must have fired


def test_a_run_without_an_inspector_has_neither_record(finished):
    record = finished().record
    assert record["inspection"] is None
    assert record["hijack"] is None


def test_every_client_has_an_inspector_of_its_own(make_job):
    job = make_job(inspector="scrutinizer")
    inspectors = {id(client.inspector) for client in job.trainer.clients}
    assert len(inspectors) == 3


def test_an_inspector_does_not_change_the_run(finished):
    plain, watched = finished(), finished(inspector="scrutinizer")
    assert watched.record["test_loss"] == plain.record["test_loss"]
    assert watched.record["bytes"] == plain.record["bytes"]


def test_a_hijacked_run_is_scored_beside_the_mean_image(finished):
    figures = finished(hijack=True).record["hijack"]
    assert figures["images"] == 20
    assert 0 < figures["mse"] < 1
    assert 0 < figures["mean_image_mse"] < 1


def test_a_hijacked_run_cannot_be_resumed(finish, small):
    done = finish(hijack=True)
    with pytest.raises(ConfigError, match="a hijacked run cannot be resumed"):
        run(small(hijack=True), done.folder)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"inspector": "splitgard"}, "did you mean 'splitguard'"),
        ({"hijack": True, "detector": "contra"}, "takes no trigger or detector"),
    ],
)
def test_settings_that_do_not_fit_are_refused(small, settings, reason):
    with pytest.raises(ConfigError, match=reason):
        small(**settings)


def test_the_scrutinizer_is_refused_for_a_codec_that_it_misjudges(make_job):
    with pytest.raises(ConfigError, match="takes an honest server with lightsplit-l"):
        make_job(inspector="scrutinizer", codec="lightsplit-l")


@pytest.mark.slow
@pytest.mark.parametrize("inspector", ["splitguard", "scrutinizer"])
def test_an_honest_server_raises_no_alarm(finish, inspector):
    settings = {**ALONE, "max_steps": 150, "inspector": inspector}
    inspection = finish(**settings).record["inspection"]
    assert inspection["alarmed_at"] == [None]
    assert inspection["scores"][0] > 0.25


@pytest.mark.slow
def test_wrong_labels_reveal_a_hijacker_before_the_run_ends(finish):
    settings = {**ALONE, "max_steps": STEPS, "hijack": True}
    record = finish(**settings, inspector="splitguard").record
    assert record["inspection"]["alarmed_at"][0] < STEPS


@pytest.mark.slow
def test_a_hijacker_reads_private_images_and_the_scrutinizer_notices(finish):
    settings = {**ALONE, "max_steps": 200, "hijack": True, "lr": 3e-3}
    record = finish(**settings, inspector="scrutinizer").record
    assert record["hijack"]["mse"] < 0.8 * record["hijack"]["mean_image_mse"]
    assert record["inspection"]["alarmed_at"][0] < STEPS
