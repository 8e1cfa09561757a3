"""A run in a few words: no two different methods have the same ones."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lightsplit.experiments import from_settings
from lightsplit.experiments.labels import labels, method, slug

CODECS = st.fixed_dictionaries(
    {"codec": st.sampled_from(["lightsplit-f", "lightsplit-l"])},
    optional={
        "ratio": st.floats(1, 64) | st.sampled_from([1, 8, 16]),
        "projection": st.sampled_from(["haar", "dct", "uniform"]),
        "scale": st.sampled_from(["jl", "orthonormal"]),
    },
)
OTHERS = st.fixed_dictionaries(
    {"codec": st.sampled_from(["raw", "topk", "learned-1x1"])}
)
WIRES = st.fixed_dictionaries(
    {},
    optional={
        "wire": st.sampled_from(["paper", "half", "lean", "max"]),
        "format": st.sampled_from(["fp32", "int8", "code=int4"]),
        "rounding": st.sampled_from(["nearest", "dither", "code=dither"]),
        "hand_off": st.sampled_from(["fp32", "bf16", "int8"]),
        "output_codec": st.sampled_from(["raw", "linear", "projection:size=20"]),
        "wcc": st.sampled_from([0, 0.01, 0.1, 0.1000001]),
    },
)


@given(CODECS | OTHERS, CODECS | OTHERS)
def test_two_runs_that_differ_in_an_option_of_the_codec_have_different_labels(one, two):
    first, second = from_settings(one), from_settings(two)
    assume(first.codec != second.codec)
    assert labels(first)["method"] != labels(second)["method"]


@given(WIRES, WIRES)
def test_two_runs_that_differ_on_the_wire_have_different_labels(one, two):
    first, second = from_settings(one), from_settings(two)
    assume(first != second)
    assert method(first) != method(second)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "lightsplit-f 8x"),
        ({"codec": "raw"}, "raw"),
        ({"wcc": 0.01}, "lightsplit-f 8x wcc=0.01"),
        ({"wcc": 0.0100001}, "lightsplit-f 8x wcc=0.0100001"),
        ({"wcc": 0.01000001}, "lightsplit-f 8x wcc=0.01000001"),
        ({"projection": "dct", "scale": "jl"}, "lightsplit-f 8x dct jl"),
        ({"codec": "lightsplit-l", "hidden": 64}, "lightsplit-l 8x hidden=64"),
        ({"wire": "max"}, "lightsplit-f 32x wire max"),
        ({"wire": "max", "format": "int4"}, "lightsplit-f 32x wire max int4"),
        ({"format": "int8"}, "lightsplit-f 8x int8"),
        ({"hand_off": "bf16"}, "lightsplit-f 8x hand-off bf16"),
        ({"output_codec": "linear:size=9"}, "lightsplit-f 8x output linear size=9"),
        ({"wire": "max", "topology": "vanilla"}, "lightsplit-f 32x wire max"),
        ({"detector": "contra"}, "lightsplit-f 8x"),
    ],
)
def test_the_method_is_the_codec_the_objectives_and_the_wire(settings, expected):
    assert method(from_settings(settings)) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "l2 · shared · n=5 · IID"),
        ({"cut": "l1", "heads": "private"}, "l1 · private · n=5 · IID"),
        ({"clients": 9, "alpha": 0.1}, "l2 · shared · n=9 · Dirichlet 0.1"),
        ({"topology": "vanilla"}, "l2 · shared · n=5 · IID · vanilla"),
        ({"freeze_backbone": True}, "l2 · shared · n=5 · IID · frozen backbone"),
        ({"head_until": "conv1"}, "conv1 to fc2 · shared · n=5 · IID"),
        (
            {"trigger": "badnets", "malicious": 0.2},
            "l2 · shared · n=5 · IID · badnets μ=0.2 p=0.3",
        ),
        (
            {"trigger": "badnets", "malicious_clients": "1,3"},
            "l2 · shared · n=5 · IID · badnets μ=1,3 p=0.3",
        ),
    ],
)
def test_the_setting_is_where_the_run_takes_place(settings, expected):
    assert labels(from_settings(settings))["setting"] == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "5 epochs"),
        ({"train_limit": 2000, "epochs": 2}, "2 epochs, 2,000 samples"),
        ({"max_steps": 1000}, "5 epochs, 1,000 steps"),
    ],
)
def test_the_schedule_is_how_long_it_was(settings, expected):
    assert labels(from_settings(settings))["schedule"] == expected


def test_the_task_is_named():
    assert labels(from_settings({"dataset": "mnist"}))["task"] == "mnist"


@given(CODECS | OTHERS, WIRES, st.integers(0, 9))
def test_a_slug_is_the_name_of_a_folder(codec, wire, seed):
    name = slug(from_settings({**codec, **wire, "seed": seed, "clients": 3}))
    assert re.fullmatch(r"digits-l2-[a-z0-9.+-]+-n3-iid-s\d", name)
