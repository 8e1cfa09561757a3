"""Codes that are sent once: the same bits over sockets, after kills, and on record."""

import contextlib
import json
from collections import Counter

import pytest
from lab.faults import CutMessages, in_turn, left_behind, train_under_kills
from lab.proxy import Proxy
from lab.runs import NAMES, Network, assert_same_weights, reference

from lightsplit.protocol import CodeGradient, CodeMessage, Release
from lightsplit.transports import Recorder, through

ONCE = {"release": "once", "local_epochs": 2, "train_limit": 150, "epochs": 2}


@pytest.mark.parametrize(
    ("heads", "more"),
    [
        (
            "shared",
            {"codec": "lightsplit-b", "bits": 5, "objective": ("bit-flips",)},
        ),
        (
            "private",
            {"codec": "raw", "objective": ("cem",), "format": "int8", "turn_steps": 2},
        ),
        ("shared", {"codec": "topk", "lr_schedule": "cosine", "max_steps": 7}),
        ("private", {"codec": "lightsplit-l", "alpha": 0.3, "turn_steps": "epoch"}),
        ("shared", {"codec": "lightsplit-f", "output_codec": "low-rank"}),
        ("private", {"codec": "raw", "gradients": "none", "eval_every": 1}),
        ("shared", {"codec": "lightsplit-b", "bits": 6, "dp": 2.0}),
        ("private", {"codec": "raw", "dp": 8.0}),
        ("shared", {"codec": "lightsplit-b:bits=7,encoder_hidden=8", "dp": 4.0}),
        ("private", {"codec": "lightsplit-b:bits=2,per_token=true"}),
        (
            "private",
            {"codec": "lightsplit-b:lift=fixed", "objective": ("bit-balance",)},
        ),
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


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_a_server_s_recording_has_one_code_of_each_sample_though_lines_break(
    heads, tmp_path
):
    kinds = {"release": (2, 9), "noted": (4, 14), "recall": (3,), "output": (5,)}
    settings = {"codec": "lightsplit-b", "heads": heads, **ONCE}
    cutter, recorder = CutMessages(kinds), Recorder()
    with Network(tmp_path, **settings) as network, contextlib.ExitStack() as stack:
        network.server.answer = through(recorder, network.server.answer)
        for name in NAMES:
            proxy = stack.enter_context(Proxy(network.port, cutter.watch(name)))
            network.join(name, port=proxy.port)
        got = network.finish()
    assert Counter(cutter.cuts) == {kind: len(at) for kind, at in kinds.items()}
    assert_same_weights(got, reference(**settings))
    sent = _samples_sent(recorder)
    assert set(sent.values()) == {1}
    trained = {key[1:] for key in sent if key[0] == "train"}
    held = enumerate(network.server_job.held)
    assert trained == {(client, n) for client, own in held for n in range(len(own))}
    whole = [type(message) for pair in recorder.exchanges for message in pair]
    assert not {CodeMessage, CodeGradient} & set(whole)


def _samples_sent(recorder):
    """Return how often the server got the code of each sample."""
    sent = Counter()
    for request, _ in recorder.exchanges:
        if isinstance(request, Release):
            pool = "train" if request.is_training else "test"
            for number in range(len(request.code.values) // 2):  # 16 bits each
                sent[pool, request.client, request.first + number] += 1
    return sent


@pytest.mark.parametrize("heads", ["shared", "private"])
def test_kills_of_both_ends_in_every_phase_change_nothing(heads, make_cluster):
    settings = {"codec": "lightsplit-b", "heads": heads, **ONCE}
    cluster = make_cluster(
        settings, serve=["--checkpoint-every", 3], join=["--give-up-seconds", 300]
    )
    train_under_kills(
        cluster, in_turn("server", None), count=10, seed=heads, longest_gap=16
    )
    assert_same_weights(left_behind(cluster), reference(**settings))
    for name in NAMES:
        log = (cluster.folder / name / "released.jsonl").read_text().splitlines()
        pieces = [(line["kind"], line["number"]) for line in map(json.loads, log)]
        assert len(pieces) == len(set(pieces))
