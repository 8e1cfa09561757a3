"""A poisoned client over the network, and a server that watches for it."""

from types import SimpleNamespace

import pytest
from lab.runs import Network, assert_same_weights, reference

POISONED = {"trigger": "badnets", "malicious_clients": "1", "poison_ratio": 1.0}


def finish(tmp_path, settings):
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    return network, got


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"detector": "cosine-code", "on_flag": "warn"},
        {"detector": "cosine-output", "on_flag": "skip", "threshold": 0.7},
        {
            "detector": "cosine-code",
            "on_flag": "skip",
            "threshold": 0.7,
            "heads": "private",
        },
        {"detector": "safesplit", "on_flag": "skip"},
        {
            "detector": "cosine-code,cosine-output",
            "on_flag": "skip",
            "threshold": 0.7,
        },
    ],
    ids=["warn", "skip", "private", "safesplit", "several"],
)
def test_a_watched_run_over_the_network_is_the_one_in_one_process(tmp_path, more):
    settings = {**POISONED, "epochs": 3, **more}
    expected = reference(**settings)
    _, got = finish(tmp_path, settings)
    assert got.verdicts == expected.verdicts
    assert got.undone_turns == expected.undone_turns
    assert bool(sum(got.undone_turns)) == (more["on_flag"] == "skip")
    # A turn is undone after its client has reported its accuracy.
    assert_same_weights(
        got, SimpleNamespace(**{**vars(expected), "history": got.history})
    )


@pytest.mark.slow
def test_every_client_is_told_that_a_detector_ended_the_run(tmp_path):
    settings = {**POISONED, "detector": "cosine-code", "threshold": 0.01}
    network, got = finish(tmp_path, {**settings, "on_flag": "stop", "epochs": 9})
    assert {end.reason for end in network.ends.values()} == {"detector"}
    assert len(got.verdicts) == 1
    assert got.steps == 6
