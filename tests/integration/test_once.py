"""Codes that are sent once: the same bits over sockets, after kills, and on record."""

import random
import signal
from collections import Counter

import pytest
from lab.faults import Moments, left_behind, lines, supervise
from lab.runs import NAMES, Network, assert_same_weights, reference

ONCE = {"release": "once", "local_epochs": 2, "train_limit": 150, "epochs": 2}


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize(
    "more",
    [
        {"codec": "lightsplit-b", "bits": 5, "objective": ("class-codes", "bit-flips")},
        {"codec": "raw", "objective": ("cem",), "format": "int8", "turn_steps": 2},
        {"codec": "topk", "lr_schedule": "cosine", "warm_up": 2, "max_steps": 7},
        {"codec": "lightsplit-l", "alpha": 0.3, "turn_steps": "epoch"},
        {"codec": "lightsplit-f", "output_codec": "low-rank", "eval_every": 1},
        {"codec": "raw", "gradients": "none", "accumulate": 2, "turn_steps": 2},
    ],
    ids=str,
)
def test_a_run_over_sockets_leaves_the_bits_of_one_process(heads, more, tmp_path):
    settings = {"heads": heads, **ONCE, **more}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes
    assert got.bytes["code_gradient"] == 0
