"""A codec from a file, whose messages have no length of their own, keeps every law."""

import shutil

import pytest
import torch
from lab.runs import Network, assert_same_weights, reference

from lightsplit.codecs import CODECS
from lightsplit.errors import LightSplitError
from lightsplit.experiments import build, from_settings
from lightsplit.results import tensors
from lightsplit.simulation import checkpoint

SMALL = {"train_limit": 144, "test_limit": 8, "epochs": 1}  # three batches of each
CUT = (16, 4, 4)  # channels as in the model for digits; weights fit any size


def write(path, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        tensors.save(path, CODECS.create("franken", shape=CUT).tensors())
    return {"codec": "franken", "trained": str(path), "gradients": "none"}


@pytest.fixture
def own(tmp_path):
    return write(tmp_path / "franken.safetensors") | SMALL


@pytest.mark.parametrize(
    "more", [{"heads": "shared"}, {"heads": "private", "format": "int8"}], ids=str
)
def test_a_run_over_the_network_is_the_run_in_one_process(own, more, tmp_path):
    settings = own | more
    expected = reference(**settings)
    with Network(tmp_path / "network", **settings) as network:
        network.join_all()
        got = network.finish()
    assert_same_weights(got, expected)
    assert got.bytes == expected.bytes
    assert got.bytes["code_gradient"] == 0


def test_ends_with_different_files_do_not_begin(own, tmp_path):
    other = build(from_settings(write(tmp_path / "other.safetensors", seed=1)))
    ours = build(from_settings({k: own[k] for k in ("codec", "trained", "gradients")}))
    with pytest.raises(LightSplitError, match="fingerprint"):
        ours.contract.check_same(other.contract)


def test_each_end_has_the_file_where_it_likes(own, tmp_path):
    copy = tmp_path / "elsewhere" / "copy.safetensors"
    copy.parent.mkdir()
    shutil.copy(own["trained"], copy)
    here, there = (
        build(from_settings(own | {"trained": str(path)}))
        for path in (own["trained"], copy)
    )
    here.contract.check_same(there.contract)


def run_to(settings, stop=None, resumed=None):
    small = {"clients": 2, "batch_size": 17, "turn_steps": 1}
    job = build(from_settings(settings | small))
    if resumed is not None:
        checkpoint.load(resumed, job.trainer, job.contract.digest)
    for number, _ in enumerate(job.trainer.run(), 1):
        if number == stop:
            break
    return job


def test_a_resumed_run_is_the_run_without_a_break(own, tmp_path):
    whole, first = run_to(own), run_to(own, stop=3)
    checkpoint.save(tmp_path, first.trainer, first.contract.digest)
    second = run_to(own, resumed=tmp_path)
    ours, theirs = (job.trainer.clients[0].side.state() for job in (second, whole))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert second.trainer.progress.bytes == whole.trainer.progress.bytes
