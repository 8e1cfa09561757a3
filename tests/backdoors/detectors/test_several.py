"""Several detectors by one setting."""

import pytest

from lightsplit.backdoors import make_detectors, parse_detectors
from lightsplit.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        (" ", ()),
        ("contra", ("contra",)),
        ("cosine-output , cosine-code", ("cosine-output", "cosine-code")),
    ],
)
def test_names_keep_their_order_and_lose_their_spaces(text, names):
    assert parse_detectors(text) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cosine-code,cosine-code", "named once only"),
        ("cosine-code,safesplit", "safesplit judges single turns"),
        ("safesplit,contra", "can only stand alone"),
        ("cosine-code,contr", "did you mean 'contra'"),
        ("cosine-code,", "unknown detector ''"),
    ],
)
def test_a_list_that_cannot_judge_together_is_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_detectors(text)


def test_a_setting_goes_to_every_detector_that_has_it():
    names = ("cosine-code", "cosine-output", "fltrust")
    first, second, third = make_detectors(
        names, clients=4, false_alarm_rate=0.1, trusted=2
    )
    assert first.threshold == second.threshold != first.own_threshold
    assert (third.trusted, third.threshold) == (2, third.own_threshold)


def test_a_setting_that_none_of_them_has_is_refused():
    with pytest.raises(ConfigError, match="sides: not a setting of"):
        make_detectors(("contra", "foolsgold"), clients=4, sides="one")


def test_one_threshold_serves_only_scores_of_one_scale():
    made = make_detectors(("cosine-code", "cosine-output"), clients=4, threshold=2.0)
    assert [detector.threshold for detector in made] == [2, 2]
    with pytest.raises(ConfigError, match="different scales: cosine-code 3, contra"):
        make_detectors(("cosine-code", "contra"), clients=4, threshold=2.0)
