import math

import pytest
import torch

from lightsplit.codecs import CODECS
from lightsplit.errors import ConfigError


@pytest.mark.parametrize("heads", ["shared", "private"])
@pytest.mark.parametrize("topology", ["u", "vanilla"])
@pytest.mark.parametrize("codec", [n for n in CODECS.names() if n != "franken"])
def test_every_codec_trains_in_every_arrangement(make_job, codec, topology, heads):
    if (codec, topology) == ("none", "vanilla"):
        pytest.skip("refused")
    job = make_job(codec=codec, topology=topology, heads=heads, max_steps=3)
    list(job.trainer.run())
    assert job.trainer.progress.steps == 3
    assert math.isfinite(job.trainer.progress.history[-1]["test_loss"])
    assert job.trainer.clients[0].side.has_tail == (topology == "u")


def test_shared_heads_are_one_side_and_private_heads_share_nothing(make_job):
    shared, private = make_job().trainer, make_job(heads="private").trainer
    assert shared.has_shared_heads
    places = [
        {p.data_ptr() for p in client.side.modules.parameters()}
        for client in private.clients
    ]
    assert len(set.union(*places)) == sum(map(len, places))


def test_private_heads_start_alike_and_share_a_fixed_projection(make_job):
    sides = [
        c.side for c in make_job(heads="private", projection="haar").trainer.clients
    ]
    for name, tensor in sides[0].state().items():
        assert torch.equal(tensor, sides[1].state()[name])
    projections = {id(side.modules["encoder"].projection) for side in sides}
    assert len(projections) == 1


def test_private_heads_do_not_share_a_trained_encoder(make_job):
    clients = make_job(codec="learned-1x1", heads="private").trainer.clients
    assert len({id(client.side.modules["encoder"]) for client in clients}) == 3


def test_every_sample_is_held_by_one_client(make_job):
    histogram = make_job(alpha=0.3).histogram
    assert histogram.shape == (3, 10)
    assert histogram.sum() == 60


def test_a_small_alpha_skews_the_labels_more_than_none(make_job):
    def spread(alpha):
        counts = make_job(alpha=alpha, train_limit=None).histogram.double()
        return (counts / counts.sum(1, keepdim=True)).var(0).mean()

    assert spread(0.1) > 4 * spread("iid")


def test_limits_are_kept(make_job):
    job = make_job(train_limit=31, test_limit=7)
    assert job.histogram.sum() == 31
    assert sum(len(labels) for _, labels in job.trainer._test) == 7


def test_the_contract_describes_the_built_parts(make_job):
    job = make_job(ratio=5)
    contract = job.contract
    assert contract.activation_shape == (16, 8, 8)
    assert contract.output_shape == (64,)
    assert contract.code_size == job.codec.code_size == 1024 // 5
    assert contract.fingerprint == job.codec.fingerprint != ""


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"ratio": 4}, {"cut": "l1"}, {"scale": "jl"}]
)
def test_another_experiment_has_another_contract(make_job, change):
    assert make_job(**change).contract.digest != make_job().contract.digest


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"codec": "raw", "ratio": 8}, "raw does not compress"),
        ({"codec": "raw", "projection": "haar"}, "'raw' has no option 'projection'"),
        ({"codec": "raw", "scale": "jl"}, "'raw' has no option 'scale'"),
        ({"codec": "topk", "hidden": 4}, "'topk' has no option 'hidden'"),
        ({"ratio": 1e9}, "leaves nothing of 1024 values"),
        ({"ratio": 0.5}, "ratio must be at least 1"),
        (
            {"model": "resnet18"},
            r"resnet18 takes .*\(3, 32, 32\), but digits has \(1, 8, 8",
        ),
        ({"clients": 5000}, "need 10000 samples, got 60"),
        ({"train_limit": 1}, "3 clients with at least 2 samples"),
        ({"device": "cuda:99"}, "cannot use device 'cuda:99'"),
        ({"device": "abacus"}, "cannot use device 'abacus'"),
        ({"device": "meta"}, "cannot use device 'meta'"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(make_job, settings, reason):
    with pytest.raises(ConfigError, match=reason):
        make_job(**settings)


def test_a_machine_without_cuda_says_so(make_job, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("this machine has cuda")
    with pytest.raises(ConfigError, match="cannot use device 'cuda'"):
        make_job(device="cuda")


def test_a_single_sample_is_refused_where_batchnorm_could_not_train_on_it(make_job):
    odd = {"train_limit": 5, "clients": 1, "batch_size": 2}
    with pytest.raises(ConfigError, match="client 0 has 5 samples"):
        make_job(codec="lightsplit-l", **odd)
    list(make_job(codec="lightsplit-f", **odd).trainer.run())


def test_amsgrad_is_adam_with_its_peaks_kept(make_job):
    optimizer = make_job(optimizer="amsgrad").trainer.clients[0].side.optimizer
    assert type(optimizer) is torch.optim.Adam
    assert optimizer.defaults["amsgrad"]


@pytest.mark.parametrize("codec", ["lightsplit-f", "lightsplit-l"])
def test_the_projection_can_have_a_seed_of_its_own(codec, make_job):
    """R is that of a run with the other seed; weights and data stay the same."""
    own, other = make_job(codec=codec, seed=1), make_job(codec=codec, seed=3)
    mixed = make_job(codec=codec, seed=1, projection_seed=3)
    assert mixed.codec.fingerprint == other.codec.fingerprint
    assert mixed.codec.fingerprint != own.codec.fingerprint
    first, second = own.parts.head.state_dict(), mixed.parts.head.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
