import json
from types import SimpleNamespace

import pytest

from lightsplit.cli.findings import score_text

pytestmark = pytest.mark.slow

ATTACK = ["--trigger", "badnets", "--malicious-clients", "1", "--poison-ratio", 1.0]


def test_a_flag_is_reported_during_the_run_and_in_the_summary(
    lightsplit, quick, tmp_path
):
    watch = ["--detector", "cosine-code", "--threshold", 0.01, "--on-flag", "skip"]
    result = lightsplit("train", *quick, *ATTACK, *watch, "--out", tmp_path / "run")
    assert "round 2: flagged client" in result.stderr
    assert "their turns are undone" in result.stderr
    for text in ("backdoor success", "malicious clients", "flagged clients", "F1"):
        assert text in result.stdout


def test_flags_of_several_detectors_have_the_detectors_names(
    lightsplit, quick, tmp_path
):
    watch = ["--detector", "cosine-code,cosine-output", "--threshold", 0.01]
    result = lightsplit("train", *quick, *ATTACK, *watch, "--out", tmp_path / "run")
    assert "round 2: cosine-code flagged client" in result.stderr
    assert "; cosine-output flagged client" in result.stderr
    assert "by cosine-code" in result.stdout
    assert "flagged by cosine-output" in result.stdout


def test_the_live_table_has_a_score_of_every_detector():
    seen = {"clients": [0, 1], "flagged": [1], "scores": [0.2, 7.04]}
    other = {"clients": [0, 1], "flagged": [], "scores": [0.1, 2.0]}
    progress = SimpleNamespace(
        verdicts=[{**seen, "others": [other]}], undone_turns=[0, 4]
    )
    coordinator = SimpleNamespace(progress=progress)
    assert score_text(coordinator, 0) == "0.2 · 0.1"
    assert score_text(coordinator, 1) == "7.0 flagged · 2.0, 4 undone"
    assert score_text(coordinator, 2) == "–"


def test_a_run_that_a_detector_ends_has_its_own_exit_code(lightsplit, quick, tmp_path):
    watch = ["--detector", "cosine-code", "--threshold", 0.01, "--on-flag", "stop"]
    out = ["--out", tmp_path / "run", "--json"]
    result = lightsplit("train", *quick, *watch, *out, code=3)
    assert json.loads(result.stdout)["stopped_by"] == "detector"
    assert "the run ends" in result.stderr


def test_the_summary_has_no_backdoor_lines_without_a_backdoor(
    lightsplit, quick, tmp_path
):
    result = lightsplit("train", *quick, "--out", tmp_path / "run")
    assert "backdoor" not in result.output
    assert "flagged" not in result.output


def test_alarms_and_the_hijackers_error_are_in_the_summary(lightsplit, quick, tmp_path):
    flags = ["--hijack", "--inspector", "scrutinizer", "--out", tmp_path / "run"]
    result = lightsplit("train", *quick, *flags)
    assert "none (scrutinizer)" in result.stdout
    assert "hijacked images" in result.stdout


@pytest.mark.parametrize("command", ["train", "serve", "join"])
def test_the_settings_have_a_panel_of_their_own(lightsplit, command):
    shown = lightsplit(command, "--help").stdout
    panel = shown[shown.index("Backdoors") :]
    assert "--trigger" in panel
    assert "--on-flag" in panel
