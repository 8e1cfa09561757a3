"""Several detectors that judge one run."""

import pytest

from lightsplit.backdoors import check_company, make_detectors
from lightsplit.errors import ConfigError


def test_detectors_keep_their_order_and_have_options_of_their_own():
    chosen = {"fltrust": {"trusted_client": 2}, "cosine-code": {"threshold": 2.0}}
    first, second = make_detectors(chosen, clients=4)
    assert (first.name, second.name) == ("fltrust", "cosine-code")
    assert (first.trusted_client, first.threshold) == (2, first.own_threshold)
    assert second.threshold == 2
    assert first.clients == second.clients == 4


def test_without_a_name_there_is_no_detector():
    assert make_detectors({}, clients=4) == ()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["cosine-code", "safesplit"], "safesplit judges single turns"),
        (["safesplit", "contra"], "must be the only detector, got safesplit, contra"),
        (["cosine-code", "contr"], "did you mean 'contra'"),
    ],
)
def test_detectors_that_cannot_judge_together_are_refused(names, reason):
    with pytest.raises(ConfigError, match=reason):
        check_company(names)
    with pytest.raises(ConfigError, match=reason):
        make_detectors({name: {} for name in names}, clients=4)


@pytest.mark.parametrize("names", [[], ["safesplit"], ["contra", "cosine-code"]])
def test_others_can(names):
    check_company(names)
