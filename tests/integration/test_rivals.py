"""Runs with the codecs and defences of others keep the laws of every run."""

from pathlib import Path

import pytest
import torch
from lab.runs import Network, assert_same_weights, reference

from lightsplit.experiments import build, from_settings
from lightsplit.simulation import checkpoint

SMALL = {"train_limit": 144, "test_limit": 8, "epochs": 1}  # three batches of each
TOKENS = str(Path(__file__).parent / "own_task" / "tokens.py")
FROZEN = {"freeze_client": True, "freeze_backbone": True}
RUNS = [
    {"codec": "raw", "objective": ("disco:2,width=4",), "heads": "private"},
    {"codec": "lightsplit-f", "objective": ("disco", "noise"), "topology": "vanilla"},
    {"codec": "raw", "objective": ("shredder:0.1,tensors=3",), **FROZEN},
    {"task": TOKENS, "codec": "raw", "objective": ("patch-shuffle",)},
    {"task": TOKENS, "objective": ("patch-shuffle", "disco"), "topology": "vanilla"},
    {"codec": "topk", "topology": "vanilla"},
    {"codec": "raw", "objective": ("nopeek:0.5", "noise")},
    {"objective": ("noise:kind=gaussian,bound=clip",), "topology": "vanilla"},
    {"codec": "bottlenet", "channel": "awgn", "heads": "private"},
    {"codec": "bottlenet", "channel": "erasure", "halve": True, "wire": "half"},
    {"codec": "splitfc", "reduction": 4.0},
    {"codec": "splitfc", "gradient_bits": 2.0, "topology": "vanilla", "wire": "half"},
    {"codec": "mask-sparse", "signed": True, "format": "code_gradient=int8"},
    {"codec": "c3", "topology": "vanilla"},
    {"codec": "c3", "ratio": 4, "wire": "half"},
    {"codec": "randtopk", "random_share": 0.3, "format": "int8"},
]


@pytest.mark.parametrize("settings", RUNS, ids=str)
def test_a_run_over_the_network_is_the_run_in_one_process(settings, tmp_path):
    settings = {**SMALL, **settings}
    expected = reference(**settings)
    with Network(tmp_path, **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes


def run_to(settings, stop=None, resumed=None):
    """Train in one process, to the end or for ``stop`` turns."""
    small = {**SMALL, "clients": 2, "batch_size": 17, "turn_steps": 1}
    job = build(from_settings({**small, **settings}))
    if resumed is not None:
        checkpoint.load(resumed, job.trainer, job.contract.digest)
    for number, _ in enumerate(job.trainer.run(), 1):
        if number == stop:
            break
    return job


@pytest.mark.parametrize("settings", RUNS, ids=str)
def test_a_resumed_run_is_the_run_without_a_break(settings, tmp_path):
    whole, first = run_to(settings), run_to(settings, stop=3)
    checkpoint.save(tmp_path, first.trainer, first.contract.digest)
    second = run_to(settings, resumed=tmp_path)
    for ours, theirs in zip(
        (second.trainer.server.side, second.trainer.clients[0].side),
        (whole.trainer.server.side, whole.trainer.clients[0].side),
        strict=True,
    ):
        mine, others = ours.state(), theirs.state()
        assert mine.keys() == others.keys()
        assert all(torch.equal(mine[name], others[name]) for name in others)
    assert second.trainer.progress.bytes == whole.trainer.progress.bytes
