"""The total ratio: everything that crosses, raw over ours."""

import pytest

from lightsplit.experiments import from_settings
from lightsplit.experiments.communication import foresee_traffic

pytestmark = pytest.mark.slow

CIFAR = {"dataset": "cifar10", "clients": 10}


def traffic(**settings):
    return foresee_traffic(from_settings({**CIFAR, **settings}))


@pytest.mark.parametrize("topology", ["u", "vanilla"])
@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_raw_run_has_a_total_ratio_of_exactly_one(topology, heads):
    raw = {"dataset": "digits", "codec": "raw", "topology": topology, "heads": heads}
    assert traffic(**raw).total_ratio == 1.0


@pytest.mark.parametrize("settings", [{"wire": "max"}, {"ratio": 32}])
def test_the_raw_bytes_are_those_of_a_raw_run_but_for_framing(settings):
    ours, raw = traffic(**settings), traffic(codec="raw")
    assert ours.raw_total_bytes == pytest.approx(raw.bytes["total"], rel=1e-3)


def test_hand_offs_lower_the_total_ratio_and_not_the_step_ratio():
    short, whole = traffic(ratio=32, turn_steps=1), traffic(ratio=32, heads="private")
    assert short.step_ratio == whole.step_ratio
    assert short.total_ratio < 0.5 * whole.total_ratio


def test_the_smallest_wire_saves_in_all_nearly_what_it_saves_in_a_step():
    assert traffic(wire="max").total_ratio >= 40
    assert traffic(wire="max", turn_steps="epoch").total_ratio >= 90


@pytest.mark.parametrize("preset", ["lean", "max"])
def test_without_the_optimizer_a_hand_off_is_a_byte_per_weight(preset):
    counts = traffic(wire=preset).bytes
    whole = traffic(wire=preset, hand_off="fp32", hand_off_optimizer="travels").bytes
    assert counts["hand_off"] < whole["hand_off"] / 11
