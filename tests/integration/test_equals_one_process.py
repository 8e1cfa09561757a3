"""A run over mutual TLS is the run in one process, bit for bit, byte for byte."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab.runs import NAMES, Network, assert_same_weights, reference

from lightsplit.experiments.presets import PRESETS

MATRIX = list(
    itertools.product(
        ("shared", "private"),
        ("raw", "lightsplit-f", "lightsplit-l"),
        ("u", "vanilla"),
        (1, 2, "epoch"),
    )
)
TWO_CLASSES = f"{Path(__file__).parent / 'own_task' / 'my_task.py'}:pair"
THREE_BATCHES = {"train_limit": 144, "test_limit": 8, "epochs": 1}  # of each client


@pytest.mark.parametrize(("heads", "codec", "topology", "turn_steps"), MATRIX)
def test_three_clients_over_mutual_tls_leave_the_same_bits(
    heads, codec, topology, turn_steps, certificates, tmp_path
):
    settings = {"heads": heads, "codec": codec, "topology": topology}
    settings |= THREE_BATCHES | {"turn_steps": turn_steps}
    expected = reference(**settings)
    with Network(tmp_path, tls=certificates, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes
    assert {name: end.reason for name, end in network.ends.items()} == dict.fromkeys(
        NAMES, "schedule"
    )


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize(
    "wire",
    [
        *({"wire": name, "ratio": 8} for name in PRESETS),
        {"format": "int4", "rounding": "stochastic", "output_codec": "low-rank"},
        {"wire": "max", "topology": "vanilla", "turn_steps": 2},
        {"codec": "lightsplit-b", "bits": 12, "format": "int8"},
        {"codec": "lightsplit-b", "bits": 5, "topology": "vanilla"},
        {"codec": "fsq", "values": 3, "levels": 5, "wire": "max"},
        {"codec": "lightsplit-b:bits=12,encoder_hidden=8", "topology": "vanilla"},
        {"codec": "lightsplit-b:bits=2,per_token=true,encoder_hidden=4"},
        {"codec": "lightsplit-b:bits=6,lift=fixed", "objective": ("bit-balance",)},
        {"codec": "fsq:values=2,levels=3,lift=fixed,per_token=true"},
        {"codec": "lightsplit-b:bits=3,lift=linear"},
        {
            "codec": "lightsplit-b",
            "objective": ("class-codes", "conditional-entropy", "bit-flips"),
        },
        {"codec": "raw", "objective": ("cem",)},
        {"codec": "raw", "gradients": "none", "objective": ("class-codes",)},
        {"codec": "raw", "cut": "l1", "turn_steps": "epoch", "dp": 8.0},
        {"label_dp": 1.0, "protect_labels": ("max-norm", "mean-alignment")},
        {"protect_labels": ("gradient-projection",)},
        {"task": TWO_CLASSES, "codec": "raw", "protect_labels": ("marvell",)},
    ],
    ids=lambda wire: str(wire).replace(TWO_CLASSES, "two classes"),
)
def test_written_messages_and_hand_offs_leave_the_same_bits(heads, wire, tmp_path):
    settings = {"heads": heads, **THREE_BATCHES, **wire}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize(
    "more",
    [
        {"max_steps": 7},
        {"patience": 1, "eval_every": 1, "lr": 1e-9, "epochs": 8},
        {"eval_every": 2, "turn_steps": 2, "alpha": 0.3, "train_limit": 150},
        {"wcc": 0.01, "optimizer": "sgd", "momentum": 0.9},
    ],
    ids=["max_steps", "patience", "uneven", "wcc"],
)
def test_a_run_ends_where_it_ends_in_one_process(heads, more, tmp_path):
    settings = {"heads": heads, **more}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    reasons = {end.reason for end in network.ends.values()}
    assert reasons == {"patience" if "patience" in more else "schedule"}


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_clients_that_send_nothing_leave_the_same_weights(heads, tmp_path):
    settings = {"codec": "none", "heads": heads, **THREE_BATCHES}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert got.bytes == expected.bytes
    assert (got.steps, got.client_steps) == (expected.steps, expected.client_steps)
    for mine, theirs in zip(got.clients, expected.clients, strict=True):
        assert mine.keys() == theirs.keys()
        assert all(mine[name].equal(theirs[name]) for name in theirs)


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_clients_that_report_nothing_train_the_same(heads, tmp_path):
    with Network(tmp_path, heads=heads) as network:
        network.join_all(reports=False)
        got = network.finish()
    assert got.history == []
    assert all(member.loss is None for member in network.coordinator.members)
    expected = vars(reference(heads=heads)) | {"history": []}
    assert_same_weights(got, SimpleNamespace(**expected))


def test_one_client_of_its_own_needs_no_key(tmp_path):
    settings = {"clients": 1, "train_limit": 48}
    with Network(tmp_path, names=["alice"], **settings) as network:
        network.join("alice", key=None)
        got = network.finish()
    assert_same_weights(got, reference(**settings))


@pytest.mark.parametrize(
    "recipe",
    [
        {"lr_schedule": "cosine", "warm_up": 2, "clip": 0.5},
        {"lr_schedule": "step", "lr_drops": "0.5", "heads": "private"},
        {"accumulate": 2, "turn_steps": 2, "heads": "private", "clip": 0.1},
        {"accumulate": 2, "turn_steps": "epoch", "topology": "vanilla"},
        {"precision": "bf16", "augment": "crop,flip"},
    ],
    ids=str,
)
def test_every_recipe_leaves_the_same_bits(recipe, tmp_path):
    settings = {**THREE_BATCHES, **recipe}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes
