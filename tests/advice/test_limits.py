import math

import pytest

from lightsplit.advice import Limits
from lightsplit.errors import ConfigError


@pytest.mark.parametrize(
    ("limits", "flag"),
    [
        ({"reidentification": -0.1}, "--max-reidentification"),
        ({"reidentification": 1.1}, "--max-reidentification"),
        ({"ssim_gain": -1.0}, "--max-ssim-gain"),
        ({"client_flops": -5.0}, "--max-client-flops"),
        ({"accuracy_loss": math.nan}, "--max-accuracy-loss"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_by_its_flag(limits, flag):
    with pytest.raises(ConfigError, match=flag):
        Limits(**limits)


def test_a_setting_within_all_limits_misses_none(candidates, run):
    _, bits = candidates(
        run("raw", 0.9, 0.9, 1.0), run("lightsplit-b:bits=12", 0.89, 0.44, 0.05)
    )
    limits = Limits(0.05, 0.05, client_flops=1000, accuracy_loss=0.011)
    assert limits.missed(bits) == []


def test_every_missed_limit_is_named(candidates, run):
    raw, bits = candidates(
        run("raw", 0.9, 0.9, 1.0), run("lightsplit-b:bits=12", 0.8, 0.5, 0.06)
    )
    limits = Limits(0.05, 0.05, client_flops=999, accuracy_loss=0.05)
    assert limits.missed(bits) == [
        "6.0% of the images are named",
        "SSIM is 0.100 above the class mean",
        "the client needs 1,000 FLOPs a sample",
        "accuracy is 10.00 below raw",
    ]
    assert limits.excess(bits) == pytest.approx(2.0)
    assert limits.excess(raw) == pytest.approx(20.0)


def test_what_was_not_measured_is_not_within_a_limit(candidates, run):
    given = run("lightsplit-b:bits=12", 0.8, 0.4, 0.0)
    for one in given.record["audit"]:
        one["metrics"] = {"ssim": one["metrics"]["ssim"]}
    (bits,) = candidates(given)
    missed = Limits(accuracy_loss=0.1).missed(bits)
    assert missed == [
        "re-identification was not measured",
        "there is no raw run to compare with",
    ]


def test_clients_that_send_nothing_leak_nothing(candidates, run):
    (alone,) = candidates(run("none", 0.8))
    assert Limits(0.0, 0.0).missed(alone) == []
