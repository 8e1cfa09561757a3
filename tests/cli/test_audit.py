import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from lightsplit.experiments import make_experiment, run
    from lightsplit.results import RunFolder

    folder = RunFolder.create(tmp_path_factory.mktemp("audit") / "run")
    settings = {"train_limit": 120, "test_limit": 20, "epochs": 1, "clients": 2}
    run(make_experiment(settings), folder)
    return folder.path


def test_an_audit_shows_reconstructions_and_labels(lightsplit, finished):
    result = lightsplit(
        "audit",
        finished,
        "--attack",
        "linear",
        "--attack",
        "label-hint",
        "--images",
        8,
        "--auxiliary",
        50,
    )
    for word in ("class-mean", "linear", "SSIM", "output_gradient", "audit.png"):
        assert word in result.stdout
    assert (finished / "images" / "audit.png").is_file()


def test_json_has_the_entries_and_nothing_else(lightsplit, finished):
    result = lightsplit("audit", finished, "--attack", "label-norm", "--json")
    entries = json.loads(result.stdout)
    assert {entry["attack"] for entry in entries} >= {"label-norm", "all-black"}


def test_during_training_labels_are_shown_with_their_step(lightsplit, finished):
    result = lightsplit("audit", finished, "--attack", "label-norm", "--during")
    assert "code at 2" in result.stdout


def test_what_does_not_watch_training_is_made_after_it(lightsplit, finished):
    named = ("--attack", "label-norm", "--attack", "linear")
    result = lightsplit("audit", finished, *named, "--during", "--images", 8)
    assert "code at 2" in result.stdout
    assert "linear" in result.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--attack", "decodr"), "did you mean 'decoder'?"),
        (("--form", "new"), "unknown form 'new'; known: published, adaptive, both"),
        (("--budget", "big"), "unknown budget 'big'; known: quick, short, full"),
        (("--client", 9), "client must be between 0 and 1, got 9"),
        (("--attack", "linear", "--during"), "learns or infers labels"),
        (("--device", "nowhere"), "cannot use device 'nowhere'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(refused, finished, options, reason):
    assert reason in refused("audit", finished, *options)


def test_a_folder_that_is_not_a_run_is_refused(refused, tmp_path):
    assert "is not a run" in refused("audit", tmp_path)
